# SPDX-License-Identifier: Apache-2.0
# KernelBench level 1, task 24: LogSoftmax.
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def log_softmax_kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * cols
    y_ptr += row * cols
    row_max = -float("inf")
    row_sum = 0.0
    for start in range(0, cols, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + columns, mask=columns < cols, other=-float("inf"))
        higher = tl.maximum(row_max, tl.max(x, axis=0))
        row_sum = row_sum * tl.exp(row_max - higher) + tl.sum(tl.exp(x - higher), axis=0)
        row_max = higher
    log_sum = tl.log(row_sum)
    for start in range(0, cols, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + columns, mask=columns < cols)
        tl.store(y_ptr + columns, x - row_max - log_sum, mask=columns < cols)


class ModelNew(nn.Module):
    def __init__(self, dim: int = 1):
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        rows, cols = x.shape
        y = torch.empty_like(x)
        log_softmax_kernel[(rows,)](x, y, cols, BLOCK=4096, num_warps=8)
        return y
