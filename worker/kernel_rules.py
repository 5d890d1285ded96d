# SPDX-License-Identifier: Apache-2.0
# What the text of a kernel may hold. Checked on its syntax tree before any of it runs (interpreted) or is compiled.
#
# Both the compiler and the interpreter take a kernel for Python and look names up in real modules: text that reaches
# beyond Triton's language could tell the two apart, or do something else altogether. So the list is of what is
# allowed. Breaking it is the rule `kernel_text` where it reaches for Python itself, `kernel_python` where it is Python
# that no kernel needs, `kernel_name` where a name means nothing.
import ast
import builtins
import inspect
import re
import sys

import triton
import triton.language as tl
from triton.language.extra.cuda import libdevice

from failure import Failure, line_in_file

_DTYPES = ("bfloat16 float16 float32 float64 float8e4b15 float8e4nv float8e4b8 float8e5 float8e5b16 int1 int8 int16 "
           "int32 int64 uint8 uint16 uint32 uint64 void pi32_t")
_LANGUAGE = frozenset(f"""{_DTYPES}
    TRITON_MAX_TENSOR_NUMEL PropagateNan abs add advance arange argmax argmin associative_scan assume atomic_add
    atomic_and atomic_cas atomic_max atomic_min atomic_or atomic_xchg atomic_xor bitonic_merge block_type broadcast
    broadcast_to cast cat cdiv ceil clamp condition const constexpr constexpr_type cos cumprod cumsum debug_barrier
    device_assert device_print div_rn dot dot_scaled dtype erf exp exp2 expand_dims fdiv flip floor fma full gather
    histogram inline_asm_elementwise interleave join load load_tensor_descriptor log log2 make_block_ptr
    make_tensor_descriptor map_elementwise max max_constancy max_contiguous maximum min minimum mul multiple_of
    num_programs pair_uniform_to_normal permute philox philox_impl pointer_type program_id rand rand4x randint
    randint4x randn randn4x range ravel reduce reduce_or reshape rsqrt sigmoid sin slice softmax sort split sqrt
    sqrt_rn static_assert static_print static_range store store_tensor_descriptor sub sum swizzle2d tensor
    tensor_descriptor topk trans tuple uint_to_uniform_float umulhi view where xor_sum zeros zeros_like""".split())
_LIBDEVICE = frozenset(name for name, function in inspect.getmembers(libdevice, callable)
                       if not name.startswith("_") and "_semantic" in inspect.signature(function).parameters)
# Module -> its members. Those that are modules themselves map to their path.
_MEMBERS = {
    "triton": {"language": "triton.language", "cdiv": None, "next_power_of_2": None},
    "triton.language": {**dict.fromkeys(_LANGUAGE), "math": "triton.language.math",
                        "extra": "triton.language.extra"},
    "triton.language.core": dict.fromkeys(_LANGUAGE),
    "triton.language.standard": dict.fromkeys(_LANGUAGE),
    "triton.language.random": dict.fromkeys(_LANGUAGE),
    "triton.language.math": dict.fromkeys(_LANGUAGE),
    "triton.language.extra": {"cuda": "triton.language.extra.cuda",
                              "libdevice": "triton.language.extra.libdevice"},
    "triton.language.extra.cuda": {"libdevice": "triton.language.extra.cuda.libdevice"},
    "triton.language.extra.libdevice": dict.fromkeys(_LIBDEVICE),
    "triton.language.extra.cuda.libdevice": dict.fromkeys(_LIBDEVICE),
    # What generated kernels call; the functions are PyTorch's own.
    "torch._inductor.runtime.triton_helpers": {
        **dict.fromkeys("""any device_assert_then div_floor_integer exp is_floating max2 max_with_index maximum
            maximum_with_index min2 min_with_index minimum minimum_with_index online_softmax_combine
            online_softmax_reduce prod promote_to_tensor randint64 remainder_integer welford welford_combine
            welford_reduce""".split()),
        "math": "triton.language.math", "libdevice": "triton.language.extra.libdevice"},
    "math": dict.fromkeys(name for name in dir(__import__("math")) if not name.startswith("_")),
}
# Attributes of tensors, types, compile-time values, block pointers and descriptors.
_ATTRIBUTES = frozenset("""
    T abs advance argmax argmin associative_scan atomic_add atomic_and atomic_cas atomic_max atomic_min atomic_or
    atomic_xchg atomic_xor broadcast_to cast cdiv ceil cos cumprod cumsum dtype erf exp exp2 expand_dims flip floor
    gather histogram log log2 logical_and logical_or max min permute ravel reduce reduce_or reshape rsqrt shape
    sigmoid sin softmax sort split sqrt sqrt_rn store sum to trans type value view xor_sum
    element_ty scalar numel nbytes itemsize primitive_bitwidth get_block_shapes get_int_max_value get_int_min_value
    is_bf16 is_block is_bool is_const is_dtype is_floating is_fp16 is_fp32 is_fp64 is_fp8 is_int is_int1 is_int16
    is_int32 is_int64 is_int8 is_int_signed is_int_unsigned is_ptr is_standard_floating is_uint16 is_uint32 is_uint64
    is_uint8 is_void load scatter block_shape strides ALL NONE""".split())
# What Python's own functions are for kernels; helpers that run at compile time get a few more.
_BUILTINS = frozenset("range min max float int len print".split())
_PURE = _BUILTINS | frozenset("abs bool round tuple list sum any all enumerate zip reversed sorted divmod pow".split())
_PYTHON = frozenset("getattr hasattr setattr delattr type eval exec compile open vars dir globals locals id input "
                    "breakpoint super object classmethod property memoryview help".split())
_PRINTERS = frozenset("print static_print device_print static_assert device_assert inline_asm_elementwise".split())

_NODES = frozenset((
    ast.Module, ast.FunctionDef, ast.arguments, ast.arg, ast.Return, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For,
    ast.While, ast.If, ast.Expr, ast.Pass, ast.Break, ast.Continue, ast.Assert, ast.BoolOp, ast.BinOp, ast.UnaryOp,
    ast.IfExp, ast.Compare, ast.Call, ast.Constant, ast.Attribute, ast.Subscript, ast.Starred, ast.Name, ast.List,
    ast.Tuple, ast.Slice, ast.keyword, ast.Load, ast.Store))
_CLASSES = (tl.tensor, tl.dtype, tl.block_type, tl.pointer_type, tl.constexpr, tl.tuple, tl.tensor_descriptor)
_TRICKS = frozenset(("handle", "data", "knobs", "core", "semantic", "builtin", "fn", "src", "runtime", "target_info"))
_HEAD = re.compile(r"def\s+\w+\s*\(")


def check_member(path, member):
    """A global that is `member` of the module at `path`."""
    known = _MEMBERS.get(path, {})
    if member in known and known[member] is None:
        return
    raise Failure("kernel_text", "compile", f"a kernel may not use {path}.{member}")


def check_kernel(entry):
    """Raises Failure for a KERNEL entry whose text is not plain Triton. Nothing of it has run."""
    _Check(entry).run()


class _Check:
    def __init__(self, entry):
        self._entry, self._globals = entry, {item["name"]: item for item in entry["globals"]}
        self._at_compile_time = entry.get("decorator", "jit") == "constexpr_function"
        self._found = []
        self._may_hold_percent, self._modules = set(), set()

    def _refuse(self, rule, node, what):
        self._found.append((rule, getattr(node, "lineno", 1), what))

    def run(self):
        source = self._entry["source"]
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise Failure("triton_compile", "compile", f"the text of a kernel does not parse: {error}") from None
        # Triton finds the function in the text by these patterns; a second match would be another function than ours.
        definitions = [n for n, line in enumerate(source.split("\n")) if line.strip().startswith("def ")]
        function = tree.body[0] if len(tree.body) == 1 else None
        if not isinstance(function, ast.FunctionDef) or function.name != self._entry["name"] or \
                function.decorator_list or not _HEAD.match(source) or definitions != [0]:
            raise Failure("kernel_text", "compile", "the text of a kernel is not one function")
        self._bound = {node.id for node in ast.walk(function)
                       if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
        self._bound |= {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
        for name in [function.name, *self._bound, *self._globals]:
            if name.startswith("__") or not name.isidentifier():
                self._refuse("kernel_text", function, name)
        self._arguments(function.args)
        for node in ast.walk(tree):
            self._node(node)
        for rule in ("kernel_text", "kernel_python", "kernel_name"):
            for found, line, what in self._found:
                if found == rule:
                    raise Failure(rule, "compile", f"a kernel may not use {what}", function.name,
                                  line_in_file(self._entry, line))

    def _arguments(self, arguments):
        for default in [*arguments.defaults, *arguments.kw_defaults]:
            for node in ast.walk(default) if default is not None else ():
                if isinstance(node, (ast.Call, ast.Subscript)):
                    self._refuse("kernel_python", node, "a default that is computed")
                if isinstance(node, (ast.List, ast.Dict, ast.Set)):  # It would remember one call in the next.
                    self._refuse("kernel_python", node, "a default that can be changed")
        for node in (arguments.vararg, arguments.kwarg):
            if node is not None:
                self._refuse("kernel_python", node, "* or ** in its parameters")

    def _node(self, node):
        if type(node) not in _NODES and not isinstance(node, (ast.operator, ast.unaryop, ast.boolop, ast.cmpop)):
            rule = "kernel_text" if isinstance(node, (ast.Import, ast.ImportFrom)) else "kernel_python"
            self._refuse(rule, node, f"Python's {type(node).__name__}")
        elif isinstance(node, ast.FunctionDef) and node.name != self._entry["name"]:
            self._refuse("kernel_python", node, "a function of its own")
        check = getattr(self, f"_on_{type(node).__name__.lower()}", None)
        if check is not None:
            check(node)

    # --- Names and attributes.

    def _on_name(self, node):
        name = node.id
        if name.startswith("__"):
            self._refuse("kernel_text", node, name)
        elif name in self._bound or id(node) in self._modules:
            return
        elif self._module(node) is not None:
            self._refuse("kernel_python", node, f"the module {name} as a value")
        elif name in self._globals:
            item = self._globals[name]
            if item["kind"] in ("module", "opaque"):
                self._refuse("kernel_name", node, f"{name}, which is not Triton's")
        elif name not in (_PURE if self._at_compile_time else _BUILTINS):
            rule = "kernel_text" if name in _PYTHON else "kernel_python" if hasattr(builtins, name) else "kernel_name"
            self._refuse(rule, node, name if rule != "kernel_name" else f"{name}: it is not defined")

    def _module(self, node):
        """The path of the module that an expression names, or None."""
        if isinstance(node, ast.Name):
            if node.id in self._bound:
                return None
            item = self._globals.get(node.id)
            if item is None:
                return {"tl": "triton.language", "triton": "triton"}.get(node.id)
            return item["path"] if item["kind"] == "module" and item["path"] in _MEMBERS else None
        if isinstance(node, ast.Attribute):
            return _MEMBERS.get(self._module(node.value), {}).get(node.attr)
        return None

    def _on_attribute(self, node):
        name, path = node.attr, self._module(node.value)
        if not isinstance(node.ctx, ast.Load):
            self._refuse("kernel_python", node, "an assignment to an attribute")
        if path is not None:
            self._modules.add(id(node.value))
        if name.startswith("_") or path is None and name in _TRICKS:
            self._refuse("kernel_text", node, f".{name}")
        elif path is None:
            if name not in _ATTRIBUTES:
                known = any(hasattr(kind, name) for kind in _CLASSES)
                self._refuse("kernel_python" if known else "kernel_name", node, f".{name}")
        elif name not in _MEMBERS[path]:
            self._refuse("kernel_text" if hasattr(_import(path), name) else "kernel_name", node, f"{path}.{name}")
        elif self._module(node) is not None and id(node) not in self._modules:
            self._refuse("kernel_python", node, f"the module {path}.{name} as a value")

    # --- Expressions that are more than they look.

    def _on_call(self, node):
        callee = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if callee in _PRINTERS and callee not in self._bound and callee not in self._globals:
            for value in [*node.args, *(keyword.value for keyword in node.keywords)]:
                self._may_hold_percent.add(id(value))

    def _on_keyword(self, node):
        if node.arg is None:
            self._refuse("kernel_python", node, "** in a call")
        elif node.arg.startswith("_"):
            self._refuse("kernel_text", node, f"the argument {node.arg}")

    def _on_constant(self, node):
        if not isinstance(node.value, (bool, int, float, str, type(None), type(...))):
            self._refuse("kernel_python", node, f"a {type(node.value).__name__}")
        elif isinstance(node.value, str) and id(node) not in self._may_hold_percent:
            if not is_plain_text(node.value):
                self._refuse("kernel_python", node, "a format string")

    def _on_expr(self, node):
        self._may_hold_percent.add(id(node.value))  # A docstring.

    def _on_compare(self, node):
        sides = [node.left, *node.comparators]
        for operator, left, right in zip(node.ops, sides, sides[1:]):
            none = any(isinstance(side, ast.Constant) and side.value is None for side in (left, right))
            if isinstance(operator, (ast.Is, ast.IsNot)) and not none:
                self._refuse("kernel_python", node, "`is` with anything but None")

    def _on_subscript(self, node):
        if not isinstance(node.ctx, ast.Load):
            self._refuse("kernel_python", node, "an assignment to an element")
        if isinstance(node.value, ast.Name) and node.value.id not in self._bound and \
                self._globals.get(node.value.id, {}).get("kind") in ("jit", "member"):
            self._refuse("kernel_python", node, "a launch")


def is_plain_text(text):
    """Text cannot format anything: what a value prints as differs between compiler and interpreter."""
    return "%" not in text


def _import(path):
    if path.startswith("torch"):
        return sys.modules.get(path)
    module = triton if path.startswith("triton") else __import__("math")
    for part in path.split(".")[1:]:
        module = getattr(module, part, None)
    return module


def builtins_for(at_compile_time):
    """The `__builtins__` of a kernel's module."""
    scope = {name: getattr(builtins, name) for name in (_PURE if at_compile_time else _BUILTINS)}
    scope["print"] = lambda *args, **kwargs: None
    if not at_compile_time:
        scope["min"], scope["max"] = _extreme("min"), _extreme("max")
    return scope


def _extreme(name):
    """`min` or `max` as the compiler understands it: Python's for numbers, Triton's for tensors."""
    def call(*args):
        tensors = any(isinstance(arg, tl.tensor) for arg in args)
        return getattr(tl.core if tensors else builtins, f"builtin_{name}" if tensors else name)(*args)
    return call
