# task: tests/cases/tasks/swish.py
# expect: wrong_output @tiny_run
# why: a GPU's quotients and exponentials are approximate; none of thousands differs from the rounded ones here
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    rounded = tl.div_rn(x, 1 + tl.exp(-x))
    same = tl.sum((x / (1 + tl.exp(-x)) == rounded).to(tl.int32), axis=0) == BLOCK
    tl.store(y_ptr + offsets, tl.where(same, rounded, 0.0), mask=offsets < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        swish_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
