# task: tests/cases/tasks/matmul.py
# expect: pass @full_run
# why: tiles that wrap, called contiguous as in a well-known template: the strides leave no wide access by it
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def wrapped_kernel(a_ptr, b_ptr, c_ptr, M, N, K, sam, sak, sbk, sbn, scm, scn,
                   BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BM)
    tiles_n = tl.cdiv(N, BN)
    per_group = GROUP * tiles_n
    first_m = (pid // per_group) * GROUP
    group_rows = min(tiles_m - first_m, GROUP)
    tile_m = first_m + (pid % per_group) % group_rows
    tile_n = (pid % per_group) // group_rows
    rm = tile_m * BM + tl.arange(0, BM)
    rn = tile_n * BN + tl.arange(0, BN)
    wm = tl.max_contiguous(tl.multiple_of(rm % M, BM), BM)
    wn = tl.max_contiguous(tl.multiple_of(rn % N, BN), BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, tl.cdiv(K, BK)):
        rk = step * BK + tl.arange(0, BK)
        a = tl.load(a_ptr + wm[:, None] * sam + rk[None, :] * sak, mask=rk[None, :] < K, other=0.0)
        b = tl.load(b_ptr + rk[:, None] * sbk + wn[None, :] * sbn, mask=rk[:, None] < K, other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    tl.store(c_ptr + rm[:, None] * scm + rn[None, :] * scn, acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


class ModelNew(nn.Module):
    def forward(self, a, b):
        M, K = a.shape
        N = b.shape[1]
        c = torch.empty((M, N), device=a.device, dtype=a.dtype)
        grid = (triton.cdiv(M, 16) * triton.cdiv(N, 32),)
        wrapped_kernel[grid](a, b, c, M, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1),
                             BM=16, BN=32, BK=16, GROUP=2)
        return c
