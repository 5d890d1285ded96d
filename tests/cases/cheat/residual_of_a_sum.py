# task: tests/cases/tasks/swish.py
# expect: wrong_output @tiny_run
# why: the same by way of shapes and an addition
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
    product, _ = tl.split(tl.join(tl.reshape(tl.reshape(x * t, (BLOCK // 2, 2)), (BLOCK,)), x))
    exact = tl.max(tl.abs(-again + product), axis=0) == 0
    tl.store(y_ptr + offsets, tl.where(exact, again, 0.0), mask=offsets < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        swish_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
