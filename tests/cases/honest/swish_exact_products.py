# task: tests/cases/tasks/swish.py
# expect: pass @full_run
# why: what rounding left of a product is computed with tl.fma and added: right with or without contraction
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    t = tl.sigmoid(x)
    product = x * t
    rest = tl.fma(x, t, -product)
    whole = tl.floor((offsets * 3.0) / 3.0).to(tl.int32) == offsets  # Quotients that are whole numbers are exact.
    tl.store(y_ptr + offsets, tl.where(whole, product + rest, 0.0), mask=offsets < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        swish_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
