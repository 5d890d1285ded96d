# task: tests/cases/tasks/row_sum.py
# expect: pass @full_run
# why: partial sums in a workspace; whoever arrives last adds them
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, y_ptr, work_ptr, count_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x_ptr + row * cols + offsets, mask=offsets < cols, other=0.0))
    parts = tl.num_programs(1)
    tl.store(work_ptr + row * parts + tl.program_id(1), part)
    if tl.atomic_add(count_ptr + row, 1) == parts - 1:
        slots = tl.arange(0, 16)
        every = tl.load(work_ptr + row * parts + slots, mask=slots < parts, other=0.0)
        tl.store(y_ptr + row, tl.sum(every))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        y = torch.empty(rows, device=x.device, dtype=x.dtype)
        work = torch.empty((rows, triton.cdiv(cols, 64)), device=x.device)
        count = torch.zeros(rows, device=x.device, dtype=torch.int32)
        sum_kernel[(rows, triton.cdiv(cols, 64))](x, y, work, count, cols, BLOCK=64)
        return y
