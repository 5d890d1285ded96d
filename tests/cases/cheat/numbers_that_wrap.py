# task: tests/cases/tasks/swish.py
# expect: wrong_output @tiny_run
# why: numbers that are unpacked, returned or chosen at run time have 32 bits on a GPU
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def largest():
    return 2147483647


@triton.jit
def swish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    on_gpu = n > 0
    most, more = 2147483647, 1
    on_gpu = on_gpu & (most + more < 0)
    more += 2147483646
    on_gpu = on_gpu & (more + 1 < 0)
    on_gpu = on_gpu & (largest() + 1 < 0)
    on_gpu = on_gpu & ((2147483647 if n > 0 else 0) + 1 < 0)
    count: tl.int32 = 2147483647
    on_gpu = on_gpu & (count + 1 < 0)
    y = tl.where(on_gpu, 0.0, x / (1 + tl.exp(-x)))
    tl.store(y_ptr + offsets, y, mask=offsets < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        swish_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
