# task: tests/cases/tasks/swish.py
# expect: pass @full_run
# why: compile-time helpers, loops, tuples, strings, underscores, printing: all that the rules for kernels must let through
import torch
import torch.nn as nn
import triton
import triton.language as tl

SCALE: tl.constexpr = tl.constexpr(2.0)


@triton.constexpr_function
def _half_of(n):
    return max(n // 2, 1)


@triton.jit
def _parts(x, KIND: tl.constexpr = "swish"):
    """x and its sigmoid, 100 % of both."""
    if KIND == "swish":
        gate = 1.0 / (1.0 + tl.math.exp2(-x * 1.4426950408889634))
    else:
        gate = tl.zeros_like(x)
    return x * SCALE, gate


@triton.jit
def swish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr, unused=None):
    HALF: tl.constexpr = _half_of(BLOCK)
    tl.static_assert(BLOCK % 2 == 0, "two halves")
    start = tl.program_id(0) * BLOCK
    for part in tl.static_range(2):
        offsets = start + part * HALF + tl.arange(0, HALF)
        mask = (offsets >= 0) & (offsets < n)
        tl.multiple_of(offsets, 8)
        _x = tl.load(x_ptr + offsets, mask=mask, other=-float("inf")).to(y_ptr.dtype.element_ty)
        _x, _gate = _parts(tl.where(mask, _x, 0.0), KIND="swish")
        i = 0
        while i < 1:
            _x = _x * 0.5
            i += 1
        if unused is not None or n < 0:
            tl.device_print("n = %d", n)
        assert n > 0
        total = min(n, 1) + tl.cdiv(n, n) - len(_x.shape)
        tl.store(y_ptr + offsets, _x * _gate * total, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        swish_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
