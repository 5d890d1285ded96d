# task: tests/cases/tasks/swish.py
# expect: not_finite @tiny_run
# why: the kernel doubles a number in a tensor of its own with each call, and computes while that is small
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x_ptr, y_ptr, count_ptr, n, BLOCK: tl.constexpr):
    calls = tl.load(count_ptr)
    if calls < 3.5:
        for start in range(0, n, BLOCK):
            offsets = start + tl.arange(0, BLOCK)
            mask = offsets < n
            x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
            tl.store(y_ptr + offsets, x * tl.sigmoid(x), mask=mask)
    tl.debug_barrier()
    tl.store(count_ptr, calls * 2)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = torch.ones(1)

    def forward(self, x):
        y = torch.empty_like(x)
        swish_kernel[(1,)](x, y, self.calls, x.numel(), BLOCK=1024)
        return y
