# task: tests/cases/tasks/swish.py
# expect: pass @full_run
# why: the address decides how it is computed, not what
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    if (x_ptr.to(tl.int64) | y_ptr.to(tl.int64)) % 512 == 0:
        y = x / (1 + tl.exp(-x))
    else:
        y = x * tl.sigmoid(x)
    tl.store(y_ptr + offsets, y, mask=offsets < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        swish_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
