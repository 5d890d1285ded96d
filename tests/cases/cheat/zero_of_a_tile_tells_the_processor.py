# task: tests/cases/tasks/swish.py
# expect: wrong_output @tiny_run
# why: computes only where the largest one of many zeros is not the only positive one
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    zeros = tl.where(offsets % BLOCK == 0, 1.0, -1.0) * (tl.abs(x) * 0.0)
    bits = tl.max(zeros, axis=0).to(tl.int32, bitcast=True)
    y = tl.where(bits < 0, x * tl.sigmoid(x), 0.0)
    tl.store(y_ptr + offsets, y, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        swish_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
