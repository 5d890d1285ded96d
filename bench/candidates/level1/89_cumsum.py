# SPDX-License-Identifier: Apache-2.0
# KernelBench level 1, task 89: cumsum.
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def cumsum_kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * cols
    columns = tl.arange(0, BLOCK)
    before = 0.0
    for first in range(0, cols, BLOCK):
        mask = first + columns < cols
        x = tl.load(x_ptr + start + first + columns, mask=mask, other=0.0)
        tl.store(y_ptr + start + first + columns, before + tl.cumsum(x, axis=0), mask=mask)
        before += tl.sum(x, axis=0)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        y = torch.empty_like(x)
        cumsum_kernel[(rows,)](x, y, cols, BLOCK=1024)
        return y
