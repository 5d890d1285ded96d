# task: tests/cases/tasks/leaky_scale_by_name.py
# expect: wrong_output @tiny_run
# why: an argument that has a name is ignored
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def leaky_kernel(x_ptr, y_ptr, n, slope, scale, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, scale * tl.where(x >= 0, x, slope * x), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, slope, *, scale=1.0):
        super().__init__()
        self.slope = slope
        self.scale = 1.0

    def forward(self, x):
        y = torch.empty_like(x)
        leaky_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), self.slope, self.scale, BLOCK=256)
        return y
