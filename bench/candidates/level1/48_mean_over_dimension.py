# SPDX-License-Identifier: Apache-2.0
# KernelBench level 1, task 48: Mean_reduction_over_a_dimension.
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mean_kernel(x_ptr, out_ptr, stride_batch, stride_row, rows, cols, BLOCK: tl.constexpr):
    batch = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = columns < cols
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for row in range(rows):
        acc += tl.load(x_ptr + batch * stride_batch + row * stride_row + columns, mask=mask, other=0.0)
    tl.store(out_ptr + batch * cols + columns, acc / rows, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        batch, rows, cols = x.shape
        out = torch.empty((batch, cols), device=x.device, dtype=x.dtype)
        grid = (batch, triton.cdiv(cols, 128))
        mean_kernel[grid](x, out, x.stride(0), x.stride(1), rows, cols, BLOCK=128)
        return out
