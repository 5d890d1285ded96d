# SPDX-License-Identifier: Apache-2.0
# KernelBench level 1, task 12: Matmul_with_diagonal_matrices.
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def diag_matmul_kernel(a_ptr, b_ptr, c_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = columns < cols
    a = tl.load(a_ptr + row)
    b = tl.load(b_ptr + row * cols + columns, mask=mask)
    tl.store(c_ptr + row * cols + columns, a * b, mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, A, B):
        A = A.contiguous()
        B = B.contiguous()
        rows, cols = B.shape
        C = torch.empty_like(B)
        diag_matmul_kernel[(rows, triton.cdiv(cols, 1024))](A, B, C, cols, BLOCK=1024)
        return C
