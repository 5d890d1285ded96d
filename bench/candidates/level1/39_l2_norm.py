# SPDX-License-Identifier: Apache-2.0
# KernelBench level 1, task 39: L2Norm.
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def l2_norm_kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * cols
    columns = tl.arange(0, BLOCK)
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for first in range(0, cols, BLOCK):
        x = tl.load(x_ptr + start + first + columns, mask=first + columns < cols, other=0.0)
        squares += x * x
    norm = tl.sqrt(tl.sum(squares, axis=0))
    for first in range(0, cols, BLOCK):
        mask = first + columns < cols
        x = tl.load(x_ptr + start + first + columns, mask=mask, other=0.0)
        tl.store(y_ptr + start + first + columns, x / norm, mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        rows, cols = x.shape
        y = torch.empty_like(x)
        l2_norm_kernel[(rows,)](x, y, cols, BLOCK=4096, num_warps=8)
        return y
