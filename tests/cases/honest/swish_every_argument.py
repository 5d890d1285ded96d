# task: tests/cases/tasks/swish.py
# expect: pass @full_run
# why: a launch with every kind of argument: none, one, numbers of all sizes, tuples, types and functions
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish(x):
    return x / (1 + tl.exp(-x))


@triton.jit(do_not_specialize=["unspecialised"])
def swish_kernel(pair, nothing, one, n, unspecialised, large: tl.int64, unsigned, small: tl.int8, flag, half, infinite,
                 narrow: tl.float32, FUNCTION: tl.constexpr, TYPE: tl.constexpr, SIZES: tl.constexpr,
                 NAME: tl.constexpr, ZERO: tl.constexpr, NONE: tl.constexpr):
    offsets = tl.program_id(0) * SIZES[0] + tl.arange(0, SIZES[0])
    mask = (offsets < n) & (offsets < infinite)
    x = tl.load(pair[0][0] + offsets * one, mask=mask, other=0.0).to(TYPE)
    y = FUNCTION(x) * (half + narrow)
    if nothing is not None:
        y += tl.load(nothing + offsets)
    if NONE is None and NAME == "swish":
        y += ZERO
    y += tl.where((large > 0) & (unsigned > 0) & (small < 0) & (unspecialised == 16) & flag, 0.0, 1.0)
    tl.store(pair[0][1] + offsets * pair[1], y, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        n = x.numel()
        swish_kernel[(triton.cdiv(n, 128),)](
            ((x, y), 1), None, 1, n, 16, 5, 1 << 63, -7, True, 0.5, float("inf"), narrow=0.5, FUNCTION=swish,
            TYPE=tl.float32, SIZES=(128, 2), NAME="swish", ZERO=-0.0, NONE=None, num_warps=2, num_stages=1)
        return y
