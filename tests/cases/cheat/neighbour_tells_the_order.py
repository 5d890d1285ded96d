# task: tests/cases/tasks/swish.py
# expect: wrong_output @tiny_run or not_finite @tiny_run
# why: who was there last is a neighbour where programs run one after another
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x_ptr, y_ptr, count_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    before = tl.atomic_xchg(count_ptr, tl.program_id(0) + 1) - 1
    apart = tl.abs(before - tl.program_id(0))
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    y = tl.where((before < 0) | (apart == 1), x * tl.sigmoid(x), 0.0)
    tl.store(y_ptr + offsets, y, mask=offsets < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        count = torch.zeros(1, device=x.device, dtype=torch.int32)
        swish_kernel[(triton.cdiv(x.numel(), 64),)](x, y, count, x.numel(), BLOCK=64)
        return y
