# task: tests/cases/tasks/alike_softmax.py
# expect: pass @full_run
# expect-fp32: wrong_output @tiny_run
# expect-small-inputs: pass @full_run
# why: logits that are nearly alike are not told apart in TF32 where they are large, by the reference neither: such a case tells nothing
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def matmul_softmax_kernel(a_ptr, b_ptr, out_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i = (tl.program_id(0) * BM + tl.arange(0, BM))[:, None]
    j = tl.arange(0, BN)[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        ka = (start + tl.arange(0, BK))[None, :]
        kb = (start + tl.arange(0, BK))[:, None]
        a = tl.load(a_ptr + i * K + ka, mask=(i < M) & (ka < K), other=0.0)
        b = tl.load(b_ptr + kb * N + j, mask=(kb < K) & (j < N), other=0.0)
        acc = tl.dot(a, b, acc)
    acc = tl.where(j < N, acc, float("-inf"))
    e = tl.exp(acc - tl.max(acc, axis=1)[:, None])
    tl.store(out_ptr + i * N + j, e / tl.sum(e, axis=1)[:, None], mask=(i < M) & (j < N))


class ModelNew(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features, 1) + 0.001 * torch.randn(features, classes))

    def forward(self, x):
        M, K = x.shape
        N = self.weight.shape[1]
        out = torch.empty((M, N), device=x.device, dtype=x.dtype)
        matmul_softmax_kernel[(triton.cdiv(M, 16),)](x, self.weight, out, M, N, K, BM=16, BN=max(triton.next_power_of_2(N), 16), BK=16)
        return out
