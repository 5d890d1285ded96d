# SPDX-License-Identifier: Apache-2.0
# Float arithmetic as a GPU rounds it, for one of a candidate's runs. In another one everything is rounded as IEEE says:
# what is right must be right both ways, and what asks which of the two it is finds out nothing.
#
# Contraction. A product that goes into a sum or a difference is not rounded first (Triton's enable_fp_fusion, on unless a
# launch says otherwise), and of two products the left one is not: so compiled for sm_90 by Triton 3.6, where a change of
# sign is 0 - x and rounds. A product remembers its factors on its way through shapes and bits.
#
# Sums are added up in halves, as threads do who exchange what they have, not in numpy's order.
#
# Approximations. Of float32, `/` is div.full (2 units in the last place), tl.exp and tl.exp2 are ex2.approx (exp of a
# product that is rounded), tl.sqrt and tl.rsqrt are sqrt.approx.ftz and rsqrt.approx.ftz, the rest is libdevice's (1 or 2
# units). What the units give bit by bit is not documented, so a quarter of the results that are not exact are moved by
# one unit to either side. Which ones depends on the result and the run alone: equal arguments have equal results, as they
# must. Exact results stay (x / x, 6.0 / 3.0, the root of a square, exp(0)): kernels count in floats, and quotients that
# are near a whole number but none are farther from it than any of this. div_rn and sqrt_rn are exact everywhere.
# Kernels that know the very bits a GPU gives, and ask for those, are not found out here.
import numpy as np
import torch
from triton.runtime import interpreter as shipped
from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

_TINY = np.finfo(np.float32).tiny
_LOG2E = np.float32(1.4426950408889634)
_WIDER = {np.dtype(np.float16): np.float32, np.dtype(np.float32): np.float64}
_MIXER, _MAGNITUDE = np.uint32(2654435761), np.uint32(0x7FFFFFFF)
_LEAST, _LARGEST, _NONE = np.uint32(0x01000000), np.uint32(0x7F7FFFFF), np.uint32(0)
_STEPS = np.array([1, -1, 0, 0, 0, 0, 0, 0], np.int32).view(np.uint32)
_seed = np.uint32(0)
_contracts = False
variant = 0           # Of what is right in several ways (combining.py, zeros, casts beyond a range); the run's manner.
approximates = False  # Functions of libdevice, which are not the builder's, are to be moved, too.


def fused(a, b, c):
    """a * b + c, rounded once."""
    kind = c.dtype
    if kind in _WIDER:
        wide = _WIDER[kind]
        return (a.astype(wide) * b + c).astype(kind)
    product = a * b
    if kind != np.float64:
        return product + c
    total = product + c  # Dekker's product and Knuth's sum tell what the two roundings left.
    part = total - product
    rest = (product - (total - part)) + (c - part) + _left_of(a, b, product)
    return np.where(np.isfinite(rest), total + rest, total)


def _left_of(a, b, product):
    def halves(x):
        scaled = x * 134217729.0
        high = scaled - (scaled - x)
        return high, x - high
    (ah, al), (bh, bl) = halves(a), halves(b)
    return ((ah * bh - product) + ah * bl + al * bh) + al * bl


def _handle(data, like, factors=None):
    out = TensorHandle(data, like.dtype.scalar)
    if factors is not None:
        out.factors = factors
    return out


def _is_product(handle):
    return handle.factors is not None and handle.factors[0].dtype == handle.data.dtype


def _contracting(plain):
    def fmul(self, lhs, rhs):
        out = plain["create_fmul"](self, lhs, rhs)
        out.factors = lhs.data, rhs.data
        return out

    def fadd(self, lhs, rhs):
        if _is_product(lhs):
            return _handle(fused(*lhs.factors, rhs.data), lhs)
        if _is_product(rhs):
            return _handle(fused(*rhs.factors, lhs.data), lhs)
        return plain["create_fadd"](self, lhs, rhs)

    def fsub(self, lhs, rhs):
        if _is_product(lhs):
            return _handle(fused(*lhs.factors, -rhs.data), lhs)
        if not _is_product(rhs):
            return plain["create_fsub"](self, lhs, rhs)
        a, b = rhs.factors
        return _handle(fused(-a, b, lhs.data), lhs)

    methods = {"create_fmul": fmul, "create_fadd": fadd, "create_fsub": fsub}
    for name in _PASSING:
        methods[name] = _passing(plain[name])
    return methods


# What moves values about and leaves them as they are.
_PASSING = ("create_splat", "create_unsplat", "create_expand_dims", "create_broadcast", "create_reshape", "create_trans",
            "create_bitcast", "create_join", "create_split", "create_cat")


def _passing(plain):
    def method(self, *args):
        out = plain(self, *args)
        handles = [arg for arg in args if isinstance(arg, TensorHandle)]
        if all(handle.factors is None for handle in handles):
            return out
        outs = out if isinstance(out, tuple) else (out,)
        if plain.__name__ == "create_bitcast":
            outs[0].factors = handles[0].factors
            return out
        moved = []
        for side in (0, 1):
            sides = iter([_factor(handle, side) for handle in handles])
            one = plain(self, *[next(sides) if isinstance(arg, TensorHandle) else arg for arg in args])
            moved.append(one if isinstance(one, tuple) else (one,))
        for each, a, b in zip(outs, *moved):
            each.factors = a.data, b.data
        return out
    return method


def _factor(handle, side):
    if handle.factors is not None:
        return TensorHandle(handle.factors[side], handle.dtype)
    return handle if side == 0 else TensorHandle(np.ones_like(handle.data), handle.dtype)


def _folding(plain):
    """A sum as threads make it: halves are added to one another. Of two products the left one is not rounded."""
    def total(self, input):
        handle, axis = input.handle, self.axis
        if handle.data.dtype.kind != "f":
            return plain(self, input)
        arrays = [handle.data, *(handle.factors if _is_product(handle) else ())]
        rows = [(np.moveaxis(array, axis, 0) if axis is not None else array.ravel()) for array in arrays]
        out = rows[0]
        for half in _halves(out.shape[0]):
            if len(rows) == 3:
                out, rows = fused(rows[1][:half], rows[2][:half], out[half:]), ()
            else:
                out = out[:half] + out[half:]
        out = out[0]
        if self.keep_dims:
            out = np.expand_dims(out, axis) if axis is not None else out.reshape((1,) * handle.data.ndim)
        return self.to_tensor(out, input.dtype)
    return total


def _halves(size):
    while size > 1:
        size //= 2
        yield size


# --- Approximations of float32.

def moved(out, exact):
    """Of float32 results, a quarter of those that are not `exact`, by one unit; not the least and the largest."""
    bits = np.ascontiguousarray(out).view(np.uint32)
    steps = _STEPS[((bits ^ _seed) * _MIXER) >> 29]
    stays = (bits & _MAGNITUDE) - _LEAST >= _LARGEST - _LEAST
    return (bits + np.where(stays | exact, _NONE, steps)).view(np.float32).reshape(out.shape)


def _flushed(data):
    return np.where(np.abs(data) < _TINY, np.float32(0), data)


def _rounded(wide):
    out = wide.astype(np.float32)
    return moved(out, out == wide)


def _root(data):
    return np.sqrt(_flushed(data).astype(np.float64))


_FUNCTIONS = {
    "create_exp": lambda x: np.exp2((x * _LOG2E).astype(np.float64)),
    "create_exp2": lambda x: np.exp2(_flushed(x).astype(np.float64)),
    "create_sqrt": _root,
    "create_rsqrt": lambda x: 1 / _root(x),
    "create_log": lambda x: np.log(x.astype(np.float64)),
    "create_log2": lambda x: np.log2(x.astype(np.float64)),
    "create_sin": lambda x: np.sin(x.astype(np.float64)),
    "create_cos": lambda x: np.cos(x.astype(np.float64)),
}


def _approximate(plain):
    def fdiv(self, lhs, rhs):
        out = plain["create_fdiv"](self, lhs, rhs)
        if out.data.dtype == np.float32:
            exact = out.data.astype(np.float64) * rhs.data == lhs.data
            out.data = moved(out.data, exact)
        return out

    def erf(self, arg):
        out = plain["create_erf"](self, arg)
        if out.data.dtype == np.float32:
            out.data = moved(out.data, arg.data == 0)
        return out

    def function(name, compute):
        def method(self, arg):
            return _handle(_rounded(compute(arg.data)), arg) if arg.data.dtype == np.float32 else plain[name](self, arg)
        return method
    return {"create_fdiv": fdiv, "create_erf": erf,
            **{name: function(name, compute) for name, compute in _FUNCTIONS.items()}}


# --- Zeros. Of two a GPU's max and min may give either: the first or the second one, by the run.

def either_zero(function):
    """np.fmax and the like."""
    return lambda x, y: np.where(x == y, y if variant % 2 else x, function(x, y))


def _extreme(self, input, val_reduce_op, idx_reduce_op=None, plain=shipped.ReduceOps.min_max):
    """Of the zeros in a reduced tile a positive or a negative one."""
    out = plain(self, input, val_reduce_op, idx_reduce_op)
    tile, found = input.handle.data, (out[0] if isinstance(out, tuple) else out).handle
    zero = found.data == 0
    if tile.dtype.kind != "f" or found.data.dtype.kind != "f" or not zero.any():
        return out
    sign = -1.0 if variant % 2 else 1.0
    there = ((tile == 0) & (np.signbit(tile) == (sign < 0))).any(axis=self.axis).reshape(found.data.shape)
    found.data = np.where(zero, np.where(there, sign, -sign) * 0.0, found.data).astype(found.data.dtype)
    return out


# --- Casts beyond a range. Wider integers saturate on a GPU; for 8 bits there is no instruction, and nothing is defined.

_WIDE = {np.dtype(np.int8): np.dtype(np.int16), np.dtype(np.uint8): np.dtype(np.uint16)}
FLOAT8 = {"fp8e4nv": torch.float8_e4m3fn, "fp8e5": torch.float8_e5m2}


def to_integers(data, dtype):
    """Floats as integers. Of 8 bits: those of 16 without their upper byte, as compiled for sm_90, or the nearest."""
    kind = dtype if variant % 2 else _WIDE.get(dtype, dtype)
    limits, nan = np.iinfo(kind), np.isnan(data)
    low, high = data <= limits.min, data >= float(limits.max)
    out = np.where(low | high | nan, 0, data).astype(kind)
    out = np.where(low, limits.min, np.where(high, limits.max, out)).astype(kind)
    if kind.itemsize == 8:
        out = np.where(nan, limits.min if limits.min else 1 << 63, out).astype(kind)
    return out.astype(dtype)


def to_float8(data, name):
    """The bits of the nearest numbers, of two the even one; what is too large is the largest, as compiled for sm_90, or
    NaN or infinity."""
    kind = FLOAT8[name]
    if variant % 2 == 0:
        data = np.clip(data, -torch.finfo(kind).max, torch.finfo(kind).max)
    return torch.from_numpy(np.array(data, np.float32, order="C")).to(kind).view(torch.uint8).numpy()


def from_float8(bits, name):
    return torch.from_numpy(np.array(bits, np.uint8, order="C")).view(FLOAT8[name]).float().numpy()


# --- Which of the two it is.

_METHODS = {}  # "plain", "contracted", "approximate": {name: method of the builder}.
_SUMS = {}


def install():
    """Once per process, after everything else has been patched."""
    TensorHandle.factors = None
    names = ("create_fmul", "create_fadd", "create_fsub", "create_fdiv", "create_erf", *_PASSING, *_FUNCTIONS)
    plain = _METHODS["plain"] = {name: getattr(InterpreterBuilder, name) for name in names}
    _METHODS["contracted"], _METHODS["approximate"] = _contracting(plain), _approximate(plain)
    _SUMS.update({False: shipped.ReduceOps.sum, True: _folding(shipped.ReduceOps.sum)})
    shipped.ReduceOps.min_max = _extreme
    InterpreterBuilder.create_fma = lambda self, x, y, z: _handle(fused(x.data, y.data, z.data), z)


def use(contracted, approximate, seed=0, which=0):
    """From now on. What is not asked for costs nothing."""
    global _seed, approximates, variant, _contracts
    _seed, variant = np.uint32(seed), which
    if (contracted, approximate) == (_contracts, approximates):
        return
    _contracts, approximates = contracted, approximate
    methods = dict(_METHODS["plain"])
    if contracted:
        methods.update(_METHODS["contracted"])
    if approximate:
        methods.update(_METHODS["approximate"])
    for name, method in methods.items():
        setattr(InterpreterBuilder, name, method)
    shipped.ReduceOps.sum = _SUMS[approximate]
