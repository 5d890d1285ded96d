# task: tests/cases/tasks/swish.py
# expect: unsupported @compile
# why: a list as a default outlives a call: the compiler sees the first one, the interpreter every other
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.constexpr_function
def once(seen=[1, 0]):
    first = seen[0]
    seen.sort()
    return first


@triton.jit
def swish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    compiled: tl.constexpr = once()
    if compiled == 1:
        tl.store(y_ptr, 0.0, mask=n < 0)
    else:
        for start in range(0, n, BLOCK):
            offsets = start + tl.arange(0, BLOCK)
            mask = offsets < n
            x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
            tl.store(y_ptr + offsets, x * tl.sigmoid(x), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        swish_kernel[(2,)](x, y, x.numel(), BLOCK=1024)
        return y
