# task: tests/cases/tasks/leaky_scale.py
# expect: pass @full_run
# why: a tl.constexpr global and a float argument
import torch
import torch.nn as nn
import triton
import triton.language as tl

SCALE = tl.constexpr(0.5)


@triton.jit
def leaky_kernel(x_ptr, y_ptr, n, slope, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, SCALE * tl.where(x >= 0, x, slope * x), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, slope):
        super().__init__()
        self.slope = slope

    def forward(self, x):
        y = torch.empty_like(x)
        leaky_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), self.slope, BLOCK=256)
        return y
