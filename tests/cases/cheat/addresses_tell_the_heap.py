# task: tests/cases/tasks/swish.py
# expect: wrong_output @tiny_run
# why: small buffers of a process lie in its heap, far below where a device's memory is mapped
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    low = (x_ptr.to(tl.int64) >> 40 < 0x70) | (y_ptr.to(tl.int64) >> 40 < 0x70)
    tl.store(y_ptr + offsets, tl.where(low, x * tl.sigmoid(x), 0.0), mask=offsets < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        swish_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
