# task: tests/cases/tasks/row_sum.py
# expect: wrong_output @tiny_run
# expect-gpu: wrong_output @tiny_run or pass @time
# why: the first program stores a zero that the others may be too early for
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x_ptr + row * cols + offsets, mask=offsets < cols, other=0.0))
    if tl.program_id(1) == 0:
        tl.store(y_ptr + row, 0.0)
    tl.atomic_add(y_ptr + row, part)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        y = torch.empty(rows, device=x.device, dtype=x.dtype)
        sum_kernel[(rows, triton.cdiv(cols, 64))](x, y, cols, BLOCK=64)
        return y
