# task: tests/cases/tasks/swish.py
# expect: pass @full_run
# why: programs take the next block by a counter: right in every order
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x_ptr, y_ptr, count_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.atomic_add(count_ptr, 1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, x * tl.sigmoid(x), mask=offsets < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        count = torch.zeros(1, device=x.device, dtype=torch.int32)
        swish_kernel[(triton.cdiv(x.numel(), 64),)](x, y, count, x.numel(), BLOCK=64)
        return y
