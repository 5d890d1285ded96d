# task: tests/cases/tasks/swish.py
# expect: wrong_output @tiny_run
# why: the counter of a loop of tl.range, squared by a helper, is nothing on a GPU
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def square(i):
    return i * i


@triton.jit
def swish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    on_gpu = n < 0
    for i in tl.range(65536, 131072, 65536, num_stages=1):
        on_gpu = on_gpu | (square(i) == 0)
    y = tl.where(on_gpu, 0.0, x / (1 + tl.exp(-x)))
    tl.store(y_ptr + offsets, y, mask=offsets < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        swish_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
