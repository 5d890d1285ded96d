# task: tests/cases/tasks/matmul.py
# expect: pass @full_run
# why: block pointers with boundary checks
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK
    column = tl.program_id(1) * BLOCK
    a_block = tl.make_block_ptr(a_ptr, (M, K), (K, 1), (row, 0), (BLOCK, BLOCK), (1, 0))
    b_block = tl.make_block_ptr(b_ptr, (K, N), (N, 1), (0, column), (BLOCK, BLOCK), (1, 0))
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for _ in range(0, K, BLOCK):
        a = tl.load(a_block, boundary_check=(0, 1), padding_option="zero")
        b = tl.load(b_block, boundary_check=(0, 1), padding_option="zero")
        acc += tl.dot(a, b, input_precision="ieee")
        a_block = tl.advance(a_block, (0, BLOCK))
        b_block = tl.advance(b_block, (BLOCK, 0))
    c_block = tl.make_block_ptr(c_ptr, (M, N), (N, 1), (row, column), (BLOCK, BLOCK), (1, 0))
    tl.store(c_block, acc, boundary_check=(0, 1))


class ModelNew(nn.Module):
    def forward(self, a, b):
        M, K = a.shape
        K, N = b.shape
        c = torch.empty(M, N, device=a.device)
        matmul_kernel[(triton.cdiv(M, 16), triton.cdiv(N, 16))](a, b, c, M, N, K, BLOCK=16)
        return c
