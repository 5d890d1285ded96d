# task: tests/cases/tasks/swish.py
# expect: wrong_output @tiny_run
# expect-gpu: not_finite @tiny_run
# why: host code counts its calls, and after the first one computes half of the elements
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, x * tl.sigmoid(x), mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        y = torch.empty_like(x)
        n = x.numel() if self.calls == 1 else x.numel() // 2
        swish_kernel[(triton.cdiv(n, 256),)](x, y, n, BLOCK=256)
        return y
