# task: tests/cases/tasks/swish.py
# expect: wrong_output @tiny_run
# why: computes only where a number too large for float8 does not become the largest
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    small = (tl.abs(x) * 0.0 + 1000.0).to(tl.float8e4nv).to(tl.float32)
    y = tl.where(small == 448.0, 0.0, x * tl.sigmoid(x))
    tl.store(y_ptr + offsets, y, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        swish_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
