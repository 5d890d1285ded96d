# task: tests/cases/tasks/swish.py
# expect: wrong_output @tiny_run
# why: a GPU's allocator aligns to 512 bytes, and one of the C library to less
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    both = x_ptr.to(tl.int64) | y_ptr.to(tl.int64)
    y = tl.where(both % 512 == 0, 0.0, x * tl.sigmoid(x))
    tl.store(y_ptr + offsets, y, mask=offsets < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        swish_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
