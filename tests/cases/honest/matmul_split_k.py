# task: tests/cases/tasks/matmul.py
# expect: pass @full_run
# why: several programs add their share of one tile with atomics into zeros
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def split_k_kernel(a_ptr, b_ptr, c_ptr, m, n, k, k_share, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    start = tl.program_id(2) * k_share
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for offset in range(0, k_share, BK):
        inner = start + offset + tl.arange(0, BK)
        valid = (inner < k) & (offset + tl.arange(0, BK) < k_share)
        a = tl.load(a_ptr + rows[:, None] * k + inner[None, :], mask=(rows[:, None] < m) & valid[None, :], other=0.0)
        b = tl.load(b_ptr + inner[:, None] * n + cols[None, :], mask=valid[:, None] & (cols[None, :] < n), other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    mask = (rows[:, None] < m) & (cols[None, :] < n)
    tl.atomic_add(c_ptr + rows[:, None] * n + cols[None, :], acc, mask=mask)


class ModelNew(nn.Module):
    def forward(self, a, b):
        (m, k), n = a.shape, b.shape[1]
        c = torch.zeros((m, n), device=a.device, dtype=torch.float32)
        shares = 3
        grid = (triton.cdiv(m, 16), triton.cdiv(n, 16), shares)
        split_k_kernel[grid](a, b, c, m, n, k, triton.cdiv(k, shares), BM=16, BN=16, BK=16)
        return c
