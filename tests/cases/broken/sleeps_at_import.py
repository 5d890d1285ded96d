# task: tests/cases/tasks/swish.py
# expect: timeout @compile
# why: computes nothing and never ends: sleep is time of its own
import time

import torch
import torch.nn as nn
import triton
import triton.language as tl

time.sleep(1e6)


@triton.jit
def swish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, x * tl.sigmoid(x), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        n = x.numel()
        swish_kernel[(triton.cdiv(n, 256),)](x, y, n, BLOCK=256)
        return y
