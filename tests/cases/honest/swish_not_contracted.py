# task: tests/cases/tasks/swish.py
# expect: pass @full_run
# why: a launch that switches contraction off may count on products that are rounded
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    t = tl.sigmoid(x)
    tl.store(y_ptr + offsets, x * t, mask=offsets < n)
    again = tl.load(y_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, tl.where(x * t - again == 0, again, 0.0), mask=offsets < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        swish_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256, enable_fp_fusion=False)
        return y
