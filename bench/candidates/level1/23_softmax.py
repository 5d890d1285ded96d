# SPDX-License-Identifier: Apache-2.0
# KernelBench level 1, task 23: Softmax.
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * cols
    columns = tl.arange(0, BLOCK)
    largest = tl.full((BLOCK,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for first in range(0, cols, BLOCK):
        x = tl.load(x_ptr + start + first + columns, mask=first + columns < cols, other=-1e30)
        higher = tl.maximum(largest, x)
        total = total * tl.exp(largest - higher) + tl.exp(x - higher)
        largest = higher
    row_max = tl.max(largest, axis=0)
    row_sum = tl.sum(total * tl.exp(largest - row_max), axis=0)
    for first in range(0, cols, BLOCK):
        mask = first + columns < cols
        x = tl.load(x_ptr + start + first + columns, mask=mask)
        tl.store(y_ptr + start + first + columns, tl.exp(x - row_max) / row_sum, mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        rows, cols = x.shape
        y = torch.empty_like(x)
        softmax_kernel[(rows,)](x, y, cols, BLOCK=2048, num_warps=8)
        return y
