# task: tests/cases/tasks/row_sum.py
# expect: wrong_output @tiny_run
# expect-gpu: wrong_output @tiny_run or wrong_output @full_run or pass @time
# why: who comes last is asked before the own part is stored
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, y_ptr, work_ptr, count_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x_ptr + row * cols + offsets, mask=offsets < cols, other=0.0))
    parts, slots = tl.num_programs(1), tl.arange(0, 16)
    last = tl.atomic_add(count_ptr + row, 1) == parts - 1
    tl.store(work_ptr + row * parts + tl.program_id(1), part)
    tl.debug_barrier()
    if last:
        every = tl.load(work_ptr + row * parts + slots, mask=slots < parts, other=0.0)
        tl.store(y_ptr + row, tl.sum(every))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        parts = triton.cdiv(cols, 32)
        y = torch.zeros(rows, device=x.device, dtype=x.dtype)
        work = torch.zeros((rows, parts), device=x.device)
        count = torch.zeros(rows, device=x.device, dtype=torch.int32)
        sum_kernel[(rows, parts)](x, y, work, count, cols, BLOCK=32)
        return y
