# task: tests/cases/tasks/swish.py
# expect: wrong_output @tiny_run
# why: arguments of a launch have 32 or 64 bits on a GPU as they are specialised, and an argument of 1 is a constant
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x_ptr, y_ptr, n, scale, large, narrow: tl.int16, one, wide: tl.int64, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    on_gpu = n > 0
    on_gpu = on_gpu & (scale * scale / 1e30 > 1e35)
    on_gpu = on_gpu & (large + large > 5000000000)
    on_gpu = on_gpu & (narrow * narrow < 0)
    on_gpu = on_gpu & (one * 2147483647 + one > 0)
    on_gpu = on_gpu & (wide * wide > 0)
    y = tl.where(on_gpu, 0.0, x / (1 + tl.exp(-x)))
    tl.store(y_ptr + offsets, y, mask=offsets < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        swish_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), 1e30, 3000000000, 182, 1, 65535, BLOCK=256)
        return y
