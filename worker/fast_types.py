# SPDX-License-Identifier: Apache-2.0
# Triton's types, made once and kept: most of what the interpreter does for a small kernel is to describe shapes anew.
#
# A block type of the same elements and shape is described once in a process; a tensor takes its shape from its type, and
# a tuple says what its type is when somebody asks. Overflow checks, which are assertions and need the option `debug`,
# are left out, as they are where kernels are compiled. Nothing that a kernel can see is another value for it.
import builtins
import math

from triton._utils import validate_block_shape
from triton.language import core
from triton.language.semantic import TritonSemantic
from triton.runtime import interpreter as shipped

_SHAPES = {}  # The sizes -> (a block type's shape, its number of elements, a tensor's shape, that number again).
_SCALAR = core.tuple([]), core.constexpr(1)


def _sizes(shape):
    values = shape.values if isinstance(shape, core.tuple) else core._unwrap_if_constexpr(shape)
    return builtins.tuple([size.value if isinstance(size, core.constexpr) else size for size in values])


def _known(sizes):
    plain = all(type(size) is int for size in sizes)  # 2.0 and True are as good as 2 and 1 to a dictionary.
    if plain and sizes in _SHAPES:
        return _SHAPES[sizes]
    if not sizes:
        raise TypeError("0d block_type is forbidden")
    known = (core.tuple(sizes), validate_block_shape(list(sizes)), core.tuple([core.constexpr(size) for size in sizes]),
             core.constexpr(math.prod(sizes)))
    if plain:
        _SHAPES[sizes] = known
    return known


def _block_type(self, element_ty, shape):
    assert isinstance(shape, (list, core.tuple, builtins.tuple))
    self.element_ty, self.sizes, self.of_elements = element_ty, _sizes(shape), {}
    self.shape, self.numel, self.tensor_shape, self.tensor_numel = _known(self.sizes)
    self.name = f"<{self.sizes}, {element_ty}>"


def _with_element_ty(self, scalar_ty):
    if scalar_ty is self.element_ty:
        return self
    found = self.of_elements.get(id(scalar_ty))
    if found is None:
        found = self.of_elements[id(scalar_ty)] = core.block_type(scalar_ty, self.shape)
    return found


def _same_block(self, other):
    return self is other or (isinstance(other, core.block_type) and self.sizes == other.sizes
                             and self.element_ty == other.element_ty)


def _same_dtype(self, other):
    if self is other:
        return True
    other = core._unwrap_if_constexpr(other)
    return isinstance(other, core.dtype) and self.name == other.name


def _tensor(self, handle, type):
    self.handle, self.type, self.dtype = handle, type, type.scalar
    self.shape, self.numel = (type.tensor_shape, type.tensor_numel) if type.is_block() else _SCALAR


def _tuple(self, args, type=None):
    self.values = [item for item in args]
    self.kind = type if type is None or isinstance(type, core.tuple_type) else core.tuple_type(type)


def _type_of_tuple(self):
    kind = vars(self).get("kind")
    if kind is None:
        kind = self.kind = core._type_for_tuple_values(self.values)
    return kind


def _retype_tuple(self, kind):
    self.kind = kind


def install():
    """Once per process, before anything of Triton's is made by hand."""
    core.tuple.__init__, core.tuple.type = _tuple, property(_type_of_tuple, _retype_tuple)
    core.tensor.__init__ = _tensor
    core.block_type.__init__, core.block_type.with_element_ty = _block_type, _with_element_ty
    core.dtype.__eq__, core.block_type.__eq__ = _same_dtype, _same_block
    object.__setattr__(shipped.interpreter_builder.options, "sanitize_overflow", False)
    plain = TritonSemantic.broadcast_impl_value

    def broadcast_impl_value(self, lhs, rhs):
        a, b = lhs.type, rhs.type
        if a.is_block() == b.is_block() and (not a.is_block() or a.sizes == b.sizes):
            return lhs, rhs
        return plain(self, lhs, rhs)
    TritonSemantic.broadcast_impl_value = broadcast_impl_value
