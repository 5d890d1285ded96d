# SPDX-License-Identifier: Apache-2.0
# KernelBench level 1, task 40: LayerNorm.
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def partial_moments_kernel(x_ptr, mean_ptr, m2_ptr, cols, chunks, BLOCK: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = columns < cols
    x = tl.load(x_ptr + row * cols + columns, mask=mask, other=0.0)
    count = tl.minimum(BLOCK, cols - tl.program_id(0) * BLOCK)
    mean = tl.sum(x, axis=0) / count
    away = tl.where(mask, x - mean, 0.0)
    tl.store(mean_ptr + row * chunks + tl.program_id(0), mean)
    tl.store(m2_ptr + row * chunks + tl.program_id(0), tl.sum(away * away, axis=0))


@triton.jit
def combine_moments_kernel(mean_ptr, m2_ptr, row_mean_ptr, row_rstd_ptr, cols, chunks, eps,
                           BLOCK: tl.constexpr, CHUNKS: tl.constexpr):
    row = tl.program_id(0)
    chunk = tl.arange(0, CHUNKS)
    mask = chunk < chunks
    mean = tl.load(mean_ptr + row * chunks + chunk, mask=mask, other=0.0)
    m2 = tl.load(m2_ptr + row * chunks + chunk, mask=mask, other=0.0)
    count = tl.where(mask, tl.minimum(BLOCK, cols - chunk * BLOCK), 0).to(tl.float32)
    row_mean = tl.sum(mean * count, axis=0) / cols
    away = tl.where(mask, mean - row_mean, 0.0)
    variance = tl.sum(m2 + away * away * count, axis=0) / cols
    tl.store(row_mean_ptr + row, row_mean)
    tl.store(row_rstd_ptr + row, 1.0 / tl.sqrt(variance + eps))


@triton.jit
def normalise_kernel(x_ptr, weight_ptr, bias_ptr, row_mean_ptr, row_rstd_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = columns < cols
    x = tl.load(x_ptr + row * cols + columns, mask=mask)
    weight = tl.load(weight_ptr + columns, mask=mask)
    bias = tl.load(bias_ptr + columns, mask=mask)
    y = (x - tl.load(row_mean_ptr + row)) * tl.load(row_rstd_ptr + row) * weight + bias
    tl.store(y_ptr + row * cols + columns, y, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, normalized_shape: tuple):
        super().__init__()
        self.ln = nn.LayerNorm(normalized_shape=normalized_shape)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        cols = self.ln.weight.numel()
        rows = x.numel() // cols
        block = 8192
        chunks = triton.cdiv(cols, block)
        mean = torch.empty((rows, chunks), device=x.device, dtype=torch.float32)
        m2 = torch.empty_like(mean)
        row_mean = torch.empty((rows,), device=x.device, dtype=torch.float32)
        row_rstd = torch.empty_like(row_mean)
        y = torch.empty_like(x)
        partial_moments_kernel[(chunks, rows)](x, mean, m2, cols, chunks, BLOCK=block, num_warps=8)
        combine_moments_kernel[(rows,)](mean, m2, row_mean, row_rstd, cols, chunks, self.ln.eps,
                                        BLOCK=block, CHUNKS=triton.next_power_of_2(chunks))
        normalise_kernel[(triton.cdiv(cols, 1024), rows)](x, self.ln.weight, self.ln.bias, row_mean, row_rstd, y,
                                                          cols, BLOCK=1024)
        return y
