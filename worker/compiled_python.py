# SPDX-License-Identifier: Apache-2.0
# What Triton's compiler makes of a kernel's Python, for the interpreter: it has a Triton type wherever the compiler has
# one, so that no kernel can tell the two apart by a number that does not wrap or round.
#
# Numbers stay Python's while they are compile-time constants: literals, constexpr parameters, counters of static_range.
# They become Triton's where they are assigned or returned, as the counter of a loop, as one side of a choice that is made
# at run time, and as arguments of a launch.
import ast
import builtins

import numpy as np
import torch
import triton
import triton.language as tl
from triton.runtime import interpreter as shipped
from triton.runtime.interpreter import TensorHandle
from triton.tools.tensor_descriptor import TensorDescriptor


class BeyondInterpreter(Exception):
    """Fine on a GPU perhaps, but not here."""


def constant(value):
    return value.value if isinstance(value, tl.constexpr) else value


# --- The text of a kernel: every construct that the compiler has its own mind of becomes a call of a function below.

class Rewriter(ast.NodeTransformer):
    """`a and b` of tensors is elementwise, and so are `or` and `not`; of plain values they are Python's."""

    def visit_BoolOp(self, node):
        self.generic_visit(node)
        name = "logical_and" if isinstance(node.op, ast.And) else "logical_or"
        return _call("combine", ast.Constant(name), *[_later(value) for value in node.values])

    def visit_UnaryOp(self, node):
        self.generic_visit(node)
        return _call("negate", node.operand) if isinstance(node.op, ast.Not) else node

    def _condition(self, node):
        self.generic_visit(node)
        node.test = _call("condition", node.test)
        return node
    visit_If = visit_While = _condition

    def visit_IfExp(self, node):
        self.generic_visit(node)
        return _call("choose", node.test, _later(node.body), _later(node.orelse))

    def visit_Assert(self, node):
        self.generic_visit(node)
        node.test = _call("every", node.test)
        return node

    def visit_Assign(self, node):
        if len(node.targets) > 1:
            raise ValueError("Multiple assignments are not supported")
        self.generic_visit(node)
        node.value = _call("typed", node.value)
        return node

    def visit_AugAssign(self, node):
        self.generic_visit(node)
        before = ast.Name(node.target.id, ast.Load())
        return ast.Assign([node.target], _call("typed", ast.BinOp(before, node.op, node.value)))

    def visit_AnnAssign(self, node):
        self.generic_visit(node)
        return node if node.value is None else ast.Assign([node.target], _call("annotated", node.annotation, node.value))

    def visit_Return(self, node):
        self.generic_visit(node)
        if node.value is not None:
            node.value = _call("typed", node.value)
        return node

    def visit_For(self, node):
        self.generic_visit(node)
        if isinstance(node.iter, ast.Call):
            node.iter = ast.Call(_function("loop"), [node.iter.func, *node.iter.args], node.iter.keywords)
        return node


def _function(name):
    return ast.Attribute(ast.Name("interpreter_semantic", ast.Load()), name, ast.Load())


def _call(name, *arguments):
    return ast.Call(_function(name), list(arguments), [])


def _later(value):
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.Lambda(nothing, value)


# --- What they do.

def _combine(method, *thunks):
    tensors, value = [], None
    for thunk in thunks:
        value = thunk()
        if isinstance(value, tl.tensor):
            tensors.append(value)
        elif bool(constant(value)) == (method == "logical_or"):
            return value
    if not tensors:
        return value
    out = tensors.pop()
    while tensors:
        out = getattr(tensors.pop(), method)(out)
    return out


def _negate(value):
    return shipped.interpreter_semantic.not_(value) if isinstance(value, tl.tensor) else not constant(value)


def _condition(value):
    if isinstance(value, tl.tensor) and value.type.is_block():
        raise BeyondInterpreter("a block of values is used as one condition")
    return bool(constant(value))


def _every(value):
    return bool(value.handle.data.all()) if isinstance(value, tl.tensor) else bool(constant(value))


def _choose(test, then, otherwise):
    chosen = then() if _condition(test) else otherwise()
    return _typed(chosen) if isinstance(test, tl.tensor) else chosen


def _typed(value):
    if isinstance(value, (tuple, list)):
        items = [_typed(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, tl.tuple):
        return tl.tuple([_typed(item) for item in value.values])
    return shipped.interpreter_semantic.to_tensor(value, False)


def _annotated(annotation, value):
    return value if annotation is tl.constexpr else _typed(value)


def static_range(first, second=None, step=None, **_):
    """The numbers are compile-time constants; tl.static_range."""
    return range(*_bounds(first, second, step))


def dynamic_range(*_, **__):
    """tl.range. Nobody calls it: kernels can only loop over it."""
    raise TypeError("tl.range is no function")


def _bounds(first, second, step):
    start, end = (0, first) if second is None else (first, second)
    return start, end, 1 if step is None else step


def _loop(kind, *arguments, **options):
    if kind is not builtins.range and kind is not dynamic_range:
        return kind(*arguments, **options)
    if kind is dynamic_range:
        named = [options.get(name) for name in ("arg1", "arg2", "step")]
        arguments = [*arguments, *named[len(arguments):]]
    limits = [constant(limit) for limit in _bounds(*arguments, *[None] * (3 - len(arguments)))]
    return _count(*limits)


def _count(start, end, step):
    semantic = shipped.interpreter_semantic
    backwards = not isinstance(step, tl.tensor) and step < 0
    kind, numbers = tl.int32, []
    for number, limit in enumerate((start, end, step)):
        limit = semantic.to_tensor(-limit if number == 2 and backwards else limit)
        if limit.type.is_block() or not limit.dtype.is_int():
            raise TypeError("the limits of a loop must be whole numbers")
        kind = limit.dtype if number == 0 else semantic.integer_promote_impl(kind, limit.dtype)
        numbers.append(int(limit.handle.data.item()))
    start, end, step = numbers
    if step <= 0:
        raise BeyondInterpreter("a loop whose step is not positive")
    dtype = shipped._get_np_dtype(kind)
    for value in range(start, end, -step if backwards else step):
        yield tl.tensor(TensorHandle(np.array([value]).astype(dtype), kind), kind)


def install():
    """Kernels that are rewritten from now on follow the compiler."""
    def transform(self, source):
        tree = ast.fix_missing_locations(Rewriter().visit(ast.parse(source)))
        return ast.increment_lineno(tree, self.def_file_lineno - 1)
    shipped.FunctionRewriter._transform_ast = transform
    for function in (_combine, _negate, _condition, _every, _choose, _typed, _annotated, _loop):
        setattr(shipped.interpreter_semantic, function.__name__[1:], function)
    for language in (tl, tl.core):
        language.range, language.static_range = dynamic_range, static_range
    _rewrite_combinations()


class _Rewritten:
    """A function that combines two values, as the interpreter calls it (`fn`) and as it knows it (by comparison)."""

    def __init__(self, function):
        self._function = function
        self.fn = function.rewrite() if hasattr(function, "rewrite") else function.fn

    def __eq__(self, other):
        return self._function == other
    __hash__ = None


def _rewrite_combinations():
    for operations in (shipped.ReduceOps, shipped.ScanOps):
        def init(self, axis, combine, rest, plain=operations.__init__):
            plain(self, axis, _Rewritten(combine), rest)
        operations.__init__ = init


# --- Arguments of launches.

def argument(value, kind):
    """What a kernel is given. `kind`: the argument's type as Triton specialised it ("*fp32", "i64", "constexpr"; a list
    for a tuple), None where nobody says."""
    if kind == "constexpr":
        return value
    if isinstance(value, tuple):
        kinds = kind if isinstance(kind, list) else [None] * len(value)
        return tuple(argument(*pair) for pair in zip(value, kinds))
    if isinstance(value, TensorDescriptor):
        return shipped._implicit_cvt(value)
    if kind is None and not isinstance(value, (torch.Tensor, bool, int, float)):
        return value
    if kind is None:
        kind = triton.runtime.jit.mangle_type(value)
    if isinstance(value, torch.Tensor):
        value = value.data_ptr()
    ty = tl.str_to_ty(kind, None)
    if isinstance(ty, tl.pointer_type):
        return tl.tensor(TensorHandle(np.array([value or 0], np.uint64), ty), ty)
    if ty == tl.bfloat16:
        return shipped.interpreter_semantic.cast(argument(value, "fp32"), ty)
    data = np.array([value], np.uint64) if isinstance(value, int) and value >= 1 << 63 else np.array([value])
    return tl.tensor(TensorHandle(data.astype(shipped._get_np_dtype(ty)), ty), ty)
