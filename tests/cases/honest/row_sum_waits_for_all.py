# task: tests/cases/tasks/row_sum.py
# expect: pass @full_run
# why: all parts are stored before anybody adds them: a barrier between the programs of a row, polled by volatile loads
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
    tl.store(work_ptr + row * parts + tl.program_id(1), part)
    tl.atomic_add(count_ptr + row, 1)
    while tl.load(count_ptr + row, volatile=True) != parts:
        pass
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
