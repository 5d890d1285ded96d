# task: tests/cases/tasks/swish.py
# expect: pass @full_run
# why: a cache at module level holds output buffers by shape, and every call fills one anew
import torch
import torch.nn as nn
import triton
import triton.language as tl

CACHE = {}


@triton.jit
def swish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, x * tl.sigmoid(x), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        key = (x.shape, x.dtype)
        if key not in CACHE:
            CACHE[key] = torch.empty_like(x)
        y = CACHE[key]
        swish_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
