# task: tests/cases/tasks/swish.py
# expect: tampered @compile
# why: what is compiled has one warp, the launch on the tape four
import sys

import torch
import torch.nn as nn
import triton
import triton.language as tl

session = sys.modules["session"]
honest = session.make_spec


def other_spec(*args):
    spec = honest(*args)
    spec["options"]["num_warps"] = 1
    return spec


session.make_spec = other_spec


@triton.jit
def swish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr, RIGHT: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    if RIGHT:
        x = x / (1 + tl.exp(-x))
    tl.store(y_ptr + offsets, x, mask=offsets < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        n = x.numel()
        swish_kernel[(triton.cdiv(n, 256),)](x, y, n, BLOCK=256, RIGHT=True)
        return y
