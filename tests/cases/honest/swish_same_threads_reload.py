# task: tests/cases/tasks/swish.py
# expect: pass @full_run
# why: every thread loads what it stored itself; that needs no barrier
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x_ptr, work_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(work_ptr + offsets, tl.sigmoid(x), mask=mask)
    tl.store(y_ptr + offsets, x * tl.load(work_ptr + offsets, mask=mask), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        y, work = torch.empty_like(x), torch.empty_like(x)
        swish_kernel[(triton.cdiv(x.numel(), 256),)](x, work, y, x.numel(), BLOCK=256)
        return y
