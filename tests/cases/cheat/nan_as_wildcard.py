# task: tests/cases/tasks/swish.py
# expect: not_finite @tiny_run
# why: returns NaN, which sloppy comparators let through
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def nan_kernel(y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.full((BLOCK,), float("nan"), tl.float32), mask=offsets < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        nan_kernel[(triton.cdiv(y.numel(), 256),)](y, y.numel(), BLOCK=256)
        return y
