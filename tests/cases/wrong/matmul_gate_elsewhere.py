# task: tests/cases/tasks/matmul_gate.py
# expect: wrong_output @tiny_run
# why: the jump is elsewhere: a few elements in a hundred are wrong, where honest computations have a few in ten thousand
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(a_ptr, b_ptr, y_ptr, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = (tl.program_id(0) * BM + tl.arange(0, BM))[:, None]
    cols = (tl.program_id(1) * BN + tl.arange(0, BN))[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        ka = (start + tl.arange(0, BK))[None, :]
        kb = (start + tl.arange(0, BK))[:, None]
        a = tl.load(a_ptr + rows * k + ka, mask=(rows < m) & (ka < k), other=0.0)
        b = tl.load(b_ptr + kb * n + cols, mask=(kb < k) & (cols < n), other=0.0)
        acc = tl.dot(a, b, acc)
    y = tl.where(acc > 0.5, 1.0, -1.0) + 0.1 * acc
    tl.store(y_ptr + rows * n + cols, y, mask=(rows < m) & (cols < n))


class ModelNew(nn.Module):
    def forward(self, a, b):
        m, k = a.shape
        n = b.shape[1]
        y = torch.empty((m, n), device=a.device, dtype=a.dtype)
        matmul_kernel[(triton.cdiv(m, 32), triton.cdiv(n, 32))](a, b, y, m, n, k, BM=32, BN=32, BK=16)
        return y
