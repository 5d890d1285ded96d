# SPDX-License-Identifier: Apache-2.0
# Triton's interpreter, made fit for judging: faster, with checked memory, with libdevice, and honest about its limits.
#
# As shipped it re-patches triton.language on every call of a helper (tl.sum, tl.max, ... are helpers): most of its
# time. Here the language is patched once per process. Every access is checked against the tensors that exist; one that
# leaves them raises MemoryFault instead of reading whatever lies there. Where Python means another thing than the
# compiler (and, or, not, minimum of NaN, casts of large numbers), the compiler is followed: a kernel must not be able
# to tell who runs it.
import bisect
import inspect
import itertools
import random

import numpy as np
import torch
import triton
import triton.language as tl
from triton.backends.nvidia.compiler import CUDAOptions
from triton.language.extra import libdevice as generic_libdevice
from triton.language.extra.cuda import libdevice as cuda_libdevice
from triton.runtime import interpreter as shipped
from triton.runtime.interpreter import InterpretedFunction, InterpreterBuilder, TensorHandle

import combining
import compiled_python
import fast_types
import hints
import rounding
from compiled_python import BeyondInterpreter, argument, constant
from crew import Crew, Stuck
from races import Race, Races, Span, Tile


class MemoryFault(Exception):
    """A program touched memory outside of every tensor."""


class Memory:
    """The address ranges a launch may touch, and who has touched what in it."""

    def __init__(self):
        self._starts, self._ends = [], []
        self.races, self.crew = Races(), None

    def forget(self):
        self.__init__()

    def allow(self, start, end):
        at = bisect.bisect_left(self._starts, start)
        self._starts.insert(at, start)
        self._ends.insert(at, end)

    def check(self, pointers, mask, width, what):
        """A Span for each range that an access touches."""
        addresses = pointers.ravel() if mask is None else pointers[mask]
        if addresses.size == 0:
            return []
        if width > 1 and (addresses & np.uint64(width - 1)).any():
            raise MemoryFault(f"misaligned address: a {what} of {width} bytes at an address that is no multiple of {width}")
        low, high = int(addresses.min()), int(addresses.max())
        at = bisect.bisect_right(self._starts, low) - 1
        if at >= 0 and high + width <= self._ends[at]:
            count = addresses.size
            contiguous = high - low == (count - 1) * width and (
                count == 1 or bool((addresses[1:] - addresses[:-1] == width).all()))
            return [Span(self._starts[at], self._ends[at], addresses, None, contiguous)]
        starts, ends = np.array(self._starts, np.uint64), np.array(self._ends, np.uint64)
        index = np.searchsorted(starts, addresses, side="right").astype(np.int64) - 1
        good = (index >= 0) & (addresses + np.uint64(width) <= ends[np.maximum(index, 0)])
        if not good.all():
            raise MemoryFault(f"illegal memory access: {int((~good).sum())} of {good.size} elements of a {what} "
                              f"lie outside of every tensor")
        return [Span(self._starts[at], self._ends[at], addresses[index == at], index == at, False)
                for at in np.unique(index).tolist()]


memory = Memory()


def _mask_of(mask):
    """A mask as an array of bools; None when everything passes. Block pointers bring a bare array, and Triton makes
    the conjunction of a scalar and a vector one of integers."""
    mask = mask.data if isinstance(mask, TensorHandle) else mask
    return None if mask is None or mask.all() else mask.astype(bool, copy=False)


def _width(pointers):
    return max(1, pointers.get_element_ty().primitive_bitwidth // 8)


def _held(addresses, dtype):
    every = np.ones(addresses.shape, bool)
    return shipped._interpreter.load(addresses, every, np.zeros(addresses.shape, dtype), dtype)


def _same(a, b):
    """Equal values; the two zeros are, and so are all NaNs."""
    if a.tobytes() == b.tobytes():
        return True
    return a.dtype.kind == "f" and bool(((a == b) | (np.isnan(a) & np.isnan(b))).all())


def _check_memory():
    plain_load, plain_store = InterpreterBuilder.create_masked_load, InterpreterBuilder.create_masked_store
    plain_rmw, plain_cas = InterpreterBuilder.create_atomic_rmw, InterpreterBuilder.create_atomic_cas
    semantic = shipped._ir.MEM_SEMANTIC
    acquiring, releasing = (semantic.ACQUIRE, semantic.ACQUIRE_RELEASE), (semantic.RELEASE, semantic.ACQUIRE_RELEASE)

    def let_others(pointers, meets):
        """Before an access: a program that meets the others by it, or has met them, may let them go first."""
        crew = memory.crew
        if meets:
            crew.meet()
        if crew.met:
            crew.access((int(pointers.flat[0]), pointers.size), 0.5 if meets else 0.25)
        return crew.met

    def load(self, ptrs, mask, other, cache_modifier, eviction_policy, is_volatile):
        # Lanes that the mask leaves out are zero without `other`: compiled code clears the register before it loads.
        let_others(ptrs.data, is_volatile)
        width, selected = _width(ptrs), _mask_of(mask)
        if hints.broken:
            hints.look_at(ptrs.data, selected, width)
        for span in memory.check(ptrs.data, selected, width, "load"):
            memory.races.load(span, width, is_volatile)
            memory.races.load_own(span, Tile(ptrs.data.shape, selected))
        return plain_load(self, ptrs, mask, other, cache_modifier, eviction_policy, is_volatile)

    def store(self, ptrs, value, mask, cache_modifier, eviction_policy):
        met = let_others(ptrs.data, False)
        width, selected = _width(ptrs), _mask_of(mask)
        if hints.broken:
            hints.look_at(ptrs.data, selected, width)
        values = np.broadcast_to(value.data, ptrs.data.shape)
        values = values.ravel() if selected is None else values[selected]
        spans = memory.check(ptrs.data, selected, width, "store")
        for span in spans:
            def differs(met, span=span):
                return not _same(_held(span.addresses[met], values.dtype), span.of(values)[met])
            memory.races.store(span, width, differs)
            memory.races.store_own(span, Tile(ptrs.data.shape, selected))
        out = plain_store(self, ptrs, value, mask, cache_modifier, eviction_policy)
        if met:
            memory.crew.changed()
        for span in spans:
            if not span.contiguous and not _same(_held(span.addresses, values.dtype), span.of(values)):
                raise Race("a program stores several values to one element at once")
        return out

    def update(pointers, mask, kind, sem, plain):
        let_others(pointers.data, True)
        width = _width(pointers)
        spans = memory.check(pointers.data, mask, width, kind)
        dtype = _numpy_dtype(pointers.get_element_ty())
        before = [_held(span.addresses, dtype).tobytes() for span in spans]
        for span in spans:
            memory.races.update(span, width, sem in acquiring, sem in releasing)
        memory.races.barrier()
        out = plain()
        if before != [_held(span.addresses, dtype).tobytes() for span in spans]:
            memory.crew.changed()
        return out

    def in_any_order(plain, pointers, *others):
        """Threads of a tile that update one element do so in no order."""
        if pointers.data.size == 1 or np.unique(pointers.data).size == pointers.data.size:
            return plain(pointers, *others)
        order = memory.crew.shuffled(pointers.data.size)
        shape = pointers.data.shape
        out = plain(*[TensorHandle(np.broadcast_to(each.data, shape).ravel()[order], each.dtype)
                      for each in (pointers, *others)])
        data = np.empty_like(out.data)
        data[order] = out.data
        return TensorHandle(data.reshape(shape), out.dtype)

    def rmw(self, op, ptr, val, mask, sem, scope):
        def plain(ptr, val, mask):
            return plain_rmw(self, op, ptr, val, mask, sem, scope)
        return update(ptr, _mask_of(mask), "atomic", sem, lambda: in_any_order(plain, ptr, val, mask))

    def cas(self, ptr, cmp, val, sem, scope):
        def plain(ptr, cmp, val):
            return plain_cas(self, ptr, cmp, val, sem, scope)
        return update(ptr, None, "compare-and-swap", sem, lambda: in_any_order(plain, ptr, cmp, val))
    InterpreterBuilder.create_masked_load, InterpreterBuilder.create_masked_store = load, store
    InterpreterBuilder.create_atomic_rmw, InterpreterBuilder.create_atomic_cas = rmw, cas


def _meeting(owner, name):
    """All threads of a program take part in it, or may."""
    plain = getattr(owner, name)

    def method(*args, **kwargs):
        memory.races.barrier()
        return plain(*args, **kwargs)
    setattr(owner, name, method)


def _no_bfloat16(name):
    plain = getattr(InterpreterBuilder, name)

    def method(self, first, *rest):
        if first.dtype.scalar == tl.bfloat16:
            raise BeyondInterpreter("arithmetic on bfloat16 needs a GPU (cast to float32 first)")
        return plain(self, first, *rest)
    setattr(InterpreterBuilder, name, method)


def _torch_function(function):
    def call(*arrays):
        with np.errstate(all="ignore"):
            out = function(*[torch.from_numpy(np.ascontiguousarray(a)) for a in arrays])
        return out.numpy()
    return call


# What libdevice calls compute, by name without the "__nv_" prefix and the "f" suffix of the float32 variant.
_NUMPY = dict(
    sin=np.sin, cos=np.cos, tan=np.tan, asin=np.arcsin, acos=np.arccos, atan=np.arctan, sinh=np.sinh, cosh=np.cosh,
    tanh=np.tanh, asinh=np.arcsinh, acosh=np.arccosh, atanh=np.arctanh, exp=np.exp, exp2=np.exp2, expm1=np.expm1,
    exp10=lambda x: np.power(x.dtype.type(10), x), log=np.log, log2=np.log2, log10=np.log10, log1p=np.log1p,
    sqrt=np.sqrt, rsqrt=lambda x: 1 / np.sqrt(x), cbrt=np.cbrt, rcbrt=lambda x: 1 / np.cbrt(x), floor=np.floor,
    ceil=np.ceil, trunc=np.trunc, rint=np.rint, nearbyint=np.rint, fabs=np.abs, abs=np.abs, llabs=np.abs,
    round=lambda x: np.trunc(x + np.copysign(x.dtype.type(0.5), x)), pow=np.power, atan2=np.arctan2, fmod=np.fmod,
    remainder=lambda x, y: x - y * np.rint(x / y), max=np.maximum, min=np.minimum,
    fmax=rounding.either_zero(np.fmax), fmin=rounding.either_zero(np.fmin), fma=rounding.fused,
    copysign=np.copysign, hypot=np.hypot, fdim=lambda x, y: np.maximum(x - y, 0),
    ldexp=np.ldexp, powi=np.power, nextafter=np.nextafter, isnan=np.isnan, isinf=np.isinf, isfinite=np.isfinite,
    finite=np.isfinite, signbit=np.signbit, fast_exp=np.exp, fast_exp10=lambda x: np.power(x.dtype.type(10), x),
    fast_log=np.log, fast_log2=np.log2, fast_log10=np.log10, fast_sin=np.sin, fast_cos=np.cos, fast_tan=np.tan,
    fast_pow=np.power, fast_divide=np.divide, fdividef=np.divide, saturate=lambda x: np.clip(x, 0, 1),
    erf=_torch_function(torch.erf), erfc=_torch_function(torch.erfc), erfinv=_torch_function(torch.erfinv),
    lgamma=_torch_function(torch.lgamma), tgamma=_torch_function(lambda x: torch.exp(torch.lgamma(x))),
    normcdf=_torch_function(torch.special.ndtr), j0=_torch_function(torch.special.bessel_j0),
    j1=_torch_function(torch.special.bessel_j1), cyl_bessel_i0=_torch_function(torch.special.i0),
    cyl_bessel_i1=_torch_function(torch.special.i1), sinpi=lambda x: np.sin(np.pi * x),
    cospi=lambda x: np.cos(np.pi * x))
_EXACT = frozenset("floor ceil trunc rint nearbyint fabs abs round fmod remainder fmax fmin fma copysign fdim ldexp nextafter "
                   "saturate".split())
_SPECIAL = {"__nv_finitef": np.isfinite, "__nv_isfinited": np.isfinite, "__nv_isnand": np.isnan,
            "__nv_isinfd": np.isinf, "__nv_signbitd": np.signbit, "__nv_erff": _NUMPY["erf"],
            "__nv_fast_fdividef": np.divide}


def _extern(self, _library, _path, symbol, arguments, return_type, _pure):
    name = symbol.removeprefix("__nv_")
    function = _SPECIAL.get(symbol) or _NUMPY.get(name) or _NUMPY.get(name.removesuffix("f"))
    if function is None:
        raise BeyondInterpreter(f"libdevice function {symbol} needs a GPU")
    arrays = [a.data for a in arguments]
    out = np.asarray(function(*arrays)).astype(shipped._get_np_dtype(return_type.scalar))
    if rounding.approximates and out.dtype == np.float32 and name.removesuffix("f") not in _EXACT:
        out = rounding.moved(out, out == np.rint(out))
    return TensorHandle(out, return_type.scalar)


def _wrap_libdevice():
    """Outside of a compilation libdevice functions lack their builder: give them the interpreter's."""
    for name, function in inspect.getmembers(cuda_libdevice, inspect.isfunction):
        if "_semantic" not in inspect.signature(function).parameters:
            continue

        def call(*args, _function=function, **kwargs):
            kwargs["_semantic"] = shipped.interpreter_semantic
            return _function(*[constant(a) for a in args], **kwargs)
        setattr(cuda_libdevice, name, call)
    for name, function in inspect.getmembers(generic_libdevice, inspect.isfunction):
        if hasattr(cuda_libdevice, name):
            setattr(generic_libdevice, name, getattr(cuda_libdevice, name))


_NUMPY_DTYPES = {}


def _numpy_dtype(kind, _plain=shipped._get_np_dtype):
    """The shipped one builds its table anew on every call."""
    if isinstance(kind, tl.block_type):
        kind = kind.element_ty
    name = "pointer" if isinstance(kind, tl.pointer_type) else kind.name
    if name not in _NUMPY_DTYPES:
        _NUMPY_DTYPES[name] = _plain(kind)
    return _NUMPY_DTYPES[name]


def _call_helper(self, *args, **kwargs):
    return self.rewrite()(*args, **kwargs)


def _bfloat16(data):
    """The nearest ones, of two that are equally near the even one; as their bits."""
    bits = data.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(data), (bits >> 16) | 0x7FC0, rounded).astype(np.uint16)


_NANS = {2: (np.uint16, 0x7FFF), 4: (np.uint32, 0x7FFFFFFF)}  # As a GPU's arithmetic gives them, by bytes.


def _follow_the_compiler():
    plain_bitcast = InterpreterBuilder.create_bitcast

    def create_bitcast(self, source, kind):
        data = source.data
        if data.dtype.kind == "f" and data.itemsize in _NANS and not kind.scalar.is_floating() and np.isnan(data).any():
            integers, nan = _NANS[data.itemsize]
            bits = np.where(np.isnan(data), integers(nan), np.ascontiguousarray(data).view(integers).reshape(data.shape))
            source = TensorHandle(bits.astype(integers).view(data.dtype), source.dtype)
        return plain_bitcast(self, source, kind)
    InterpreterBuilder.create_bitcast = create_bitcast
    for name, chosen in (("minimumf", np.minimum), ("minnumf", np.fmin), ("maximumf", np.maximum), ("maxnumf", np.fmax)):
        setattr(InterpreterBuilder, f"create_{name}",
                lambda self, a, b, chosen=rounding.either_zero(chosen): self.binary_op(a, b, chosen))
    InterpreterBuilder.create_clampf = lambda self, x, low, high, nans: self.create_minimumf(
        self.create_maximumf(x, low), high)

    def cast(self, source, kind):
        data = source.data
        before, after = source.dtype.scalar, kind.scalar
        if before == tl.bfloat16 and after == tl.bfloat16:
            return source
        if before == tl.bfloat16:
            data = (data.astype(np.uint32) << 16).view(np.float32)
        if after == tl.bfloat16:
            data = _bfloat16(data.astype(np.float32, copy=False))
        return TensorHandle(data.astype(_numpy_dtype(kind)), after)
    InterpreterBuilder.cast_impl = cast
    plain_fp_to_fp = InterpreterBuilder.create_fp_to_fp

    def fp_to_fp(self, source, kind, mode):
        if source.dtype.scalar.name in rounding.FLOAT8:
            wide = rounding.from_float8(source.data, source.dtype.scalar.name)
            return cast(self, TensorHandle(wide, tl.float32), kind)
        if kind.scalar.name in rounding.FLOAT8 and mode != shipped._ir.ROUNDING_MODE.RTZ:
            wide = cast(self, source, tl.float32).data
            return TensorHandle(rounding.to_float8(wide, kind.scalar.name), kind.scalar)
        exact = tl.bfloat16 in (source.dtype.scalar, kind.scalar) and mode != shipped._ir.ROUNDING_MODE.RTZ and not (
            source.dtype.scalar.is_fp8() or kind.scalar.is_fp8())
        return cast(self, source, kind) if exact else plain_fp_to_fp(self, source, kind, mode)
    InterpreterBuilder.create_fp_to_fp = fp_to_fp

    def umulhi(self, lhs, rhs):
        kind = lhs.data.dtype
        if kind.itemsize == 8:
            low = [np.vectorize(int, otypes=[object])(side.data) % (1 << 64) for side in (lhs, rhs)]
            return TensorHandle((low[0] * low[1] >> 64).astype(np.uint64).view(kind), lhs.dtype.scalar)
        a, b = (side.data.astype(np.uint32).astype(np.uint64) for side in (lhs, rhs))
        return TensorHandle((a * b >> 32).astype(np.uint32).view(kind), lhs.dtype.scalar)
    InterpreterBuilder.create_umulhi = umulhi

    def float_to_int(self, source, kind):
        if source.dtype.scalar == tl.bfloat16:
            return self.cast_impl(source, kind)
        return TensorHandle(rounding.to_integers(source.data, np.dtype(_numpy_dtype(kind))), kind.scalar)
    InterpreterBuilder.create_fp_to_si = InterpreterBuilder.create_fp_to_ui = float_to_int


_TF32 = np.uint32(0xFFFFE000)  # The bits of a float32 that tensor cores look at.


def _multiply_as_tensor_cores():
    """Products of float32 matrices are in TF32 unless a kernel says otherwise: as compiled for a GPU, where no code
    rounds their operands, and the tensor cores leave out their last thirteen bits. The others (ieee, tf32x3, bf16x3 ...)
    are float32's as far as it goes."""
    plain = InterpreterBuilder.create_dot

    def cut(operand):
        if operand.data.dtype != np.float32:
            return operand
        return TensorHandle((np.ascontiguousarray(operand.data).view(np.uint32) & _TF32).view(np.float32), operand.dtype)

    def dot(self, a, b, d, input_precision, max_num_imprecise_acc):
        if input_precision == shipped._ir.INPUT_PRECISION.TF32:
            a, b = cut(a), cut(b)
        return plain(self, a, b, d, input_precision, max_num_imprecise_acc)
    InterpreterBuilder.create_dot = dot
    options = shipped.interpreter_builder.options
    object.__setattr__(options, "allowed_dot_input_precisions", CUDAOptions.allowed_dot_input_precisions)


class _Language:
    """A module dictionary like a kernel's, for patching the language once."""
    __globals__ = {"tl": tl, "core": tl.core}


def install():
    """Once per process, in the interpret fork server (TRITON_INTERPRET=1 is set). Everything is patched for good."""
    np.seterr(all="ignore")
    fast_types.install()
    shipped._get_np_dtype = _numpy_dtype
    shipped._patch_lang(_Language)
    InterpretedFunction.__call__ = _call_helper
    _check_memory()
    _multiply_as_tensor_cores()
    for name in ("create_barrier", "create_dot", "create_trans", "create_histogram", "create_gather", "create_cat",
                 "create_join", "create_split"):
        _meeting(InterpreterBuilder, name)
    _meeting(shipped.ReduceScanOpInterface, "apply")
    InterpreterBuilder.create_extern_elementwise = _extern

    def erf(self, arg):
        return TensorHandle(_NUMPY["erf"](arg.data), arg.dtype.scalar)
    InterpreterBuilder.create_erf = erf
    rounding.install()
    for name in ("binary_op", "unary_op", "create_dot", "create_fabs", "create_fma"):
        _no_bfloat16(name)
    _wrap_libdevice()
    _follow_the_compiler()
    compiled_python.install()
    combining.install()
    hints.install()
    for module in (tl.standard, tl.random):
        for member in list(vars(module).values()):
            if isinstance(member, InterpretedFunction):
                member.rewrite()


def _in_order(grid, order, seed):
    """The programs of a launch: "forwards", "backwards" or "shuffled"."""
    places = list(itertools.product(*map(range, grid)))
    if order == "backwards":
        places.reverse()
    elif order == "shuffled":
        random.Random(seed).shuffle(places)
    return places


def may_meet(kernel):
    """Does its text look as if its programs met? (Helpers are not looked at, and those that meet there do so all the
    same.)"""
    code = kernel.rewrite().__code__
    return any(name.startswith("atomic_") for name in code.co_names) or any(
        isinstance(names, tuple) and "volatile" in names for names in code.co_consts)


def launch(kernel, grid, arguments, signature, order, eager, seed, warps, wide=False):
    """Runs every program of one launch, of `warps` warps. `arguments`: {parameter: tensor or scalar}, compile-time ones
    included; `signature`: their types as the kernel was specialised for them, where that is known. `eager`, `seed`,
    `wide`: of programs that meet (crew.py)."""
    function = kernel.rewrite()
    annotations = {name: triton.runtime.jit._normalize_ty(kind) for name, kind in function.__annotations__.items()}
    annotated = {name: kind for name, kind in annotations.items() if kind == "constexpr"}
    prepared = {name: argument(value, signature.get(name, annotated.get(name))) for name, value in arguments.items()}
    builder, races = shipped.interpreter_builder, memory.races
    builder.set_grid_dim(*grid)
    races.begin_launch()
    hints.broken.clear()
    races.several_warps = warps > 1

    def begin(place):
        builder.grid_idx = place
        return place, races.begin_program()

    def resume(state):
        builder.grid_idx = state[0]
        races.resume(state[1])
    places = _in_order(grid, order, seed)
    memory.crew = Crew(places, begin, resume, lambda: function(**prepared), eager, seed, wide)
    memory.crew.run()
