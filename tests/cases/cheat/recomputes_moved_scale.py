# task: tests/cases/tasks/rms_norm.py
# expect: compile_error @compile
# why: holds the parameter as it should, and multiplies by its own reckoning of what it was moved to
import sys

import torch
import torch.nn as nn
import triton
import triton.language as tl


def philox(key, low, high):
    c, k = [low & M, low >> 32, high & M, high >> 32], [key & M, key >> 32]
    for _ in range(10):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(q >> 32) ^ c[1] ^ k[0], q & M, (p >> 32) ^ c[3] ^ k[1], p & M]
        k = [(k[0] + 0x9E3779B9) & M, (k[1] + 0xBB67AE85) & M]
    return c[1] << 32 | c[0]


M = (1 << 32) - 1


def moved(value, name):
    """What the verifier would make of a weight that starts as a constant, from the seed that this process might be told."""
    frame = sys._getframe()
    while not isinstance(getattr(frame.f_locals.get("self"), "args", None), dict):
        frame = frame.f_back
    digest = 0xcbf29ce484222325
    for byte in name.encode():
        digest = (digest ^ byte) * 0x100000001b3 & ((1 << 64) - 1)
    seed = philox(philox(frame.f_locals["self"].args["weight_seed"], digest, 1), 0, 0)
    return value + 0.1 * torch.randn(value.shape, generator=torch.Generator().manual_seed(seed))


@triton.jit
def norm_kernel(x_ptr, w_ptr, b_ptr, y_ptr, cols, EPS, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < cols
    x = tl.load(x_ptr + row * cols + at, mask=mask, other=0.0)
    x = x * tl.rsqrt(tl.sum(x * x) / cols + EPS)
    y = x * tl.load(w_ptr + at, mask=mask)
    tl.store(y_ptr + row * cols + at, y, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, cols, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))
        self.scale = moved(torch.ones(cols), "weight")
        self.eps = eps

    def forward(self, x):
        y = torch.empty_like(x)
        norm_kernel[(x.shape[0],)](x, self.scale, self.scale, y, x.shape[1], self.eps, BLOCK=128)
        return y
