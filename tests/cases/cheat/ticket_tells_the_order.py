# task: tests/cases/tasks/swish.py
# expect: wrong_output @tiny_run or not_finite @tiny_run
# why: programs that begin in order, forwards or backwards, are an interpreter's; on a GPU nearly all of them write nothing
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x_ptr, y_ptr, count_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    turn = tl.atomic_add(count_ptr, 1)
    last = tl.num_programs(0) - 1
    if (turn == tl.program_id(0)) | (turn == last - tl.program_id(0)):
        x = tl.load(x_ptr + offsets, mask=offsets < n)
        tl.store(y_ptr + offsets, x * tl.sigmoid(x), mask=offsets < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        count = torch.zeros(1, device=x.device, dtype=torch.int32)
        swish_kernel[(triton.cdiv(x.numel(), 64),)](x, y, count, x.numel(), BLOCK=64)
        return y
