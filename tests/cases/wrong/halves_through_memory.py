# task: tests/cases/tasks/swish.py
# expect: wrong_output @tiny_run
# expect-gpu: not_finite @tiny_run or wrong_output @tiny_run or not_finite @full_run or wrong_output @full_run or pass @time
# why: a program stores one tile and loads it as two of half the size, whose threads are others, without a barrier
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x_ptr, work_ptr, y_ptr, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    offsets = start + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(work_ptr + offsets, x * tl.sigmoid(x), mask=offsets < n)
    for half in range(2):
        part = start + half * (BLOCK // 2) + tl.arange(0, BLOCK // 2)
        tl.store(y_ptr + part, tl.load(work_ptr + part, mask=part < n), mask=part < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y, work = torch.empty_like(x), torch.empty_like(x)
        swish_kernel[(triton.cdiv(x.numel(), 256),)](x, work, y, x.numel(), BLOCK=256)
        return y
