# SPDX-License-Identifier: Apache-2.0
# KernelBench level 1, task 47: Sum_reduction_over_a_dimension.
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, out_ptr, reduced, inner, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    outer = tl.program_id(1).to(tl.int64)
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    for start in range(0, reduced, ROWS):
        rows = start + tl.arange(0, ROWS)
        mask = (rows[:, None] < reduced) & (columns[None, :] < inner)
        acc += tl.load(x_ptr + outer * reduced * inner + rows[:, None] * inner + columns[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + outer * inner + columns, tl.sum(acc, axis=0), mask=columns < inner)


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        dim = self.dim % x.dim()
        outer, inner = 1, 1
        for size in x.shape[:dim]:
            outer *= size
        for size in x.shape[dim + 1:]:
            inner *= size
        shape = list(x.shape)
        shape[dim] = 1
        out = torch.empty(shape, device=x.device, dtype=x.dtype)
        sum_kernel[(triton.cdiv(inner, 64), outer)](x, out, x.shape[dim], inner, ROWS=16, BLOCK=64)
        return out
