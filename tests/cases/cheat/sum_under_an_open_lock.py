# task: tests/cases/tasks/row_sum.py
# expect: wrong_output @tiny_run
# expect-gpu: wrong_output @tiny_run or pass @time
# why: a lock that is taken and given back, and that nobody waits for
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, y_ptr, work_ptr, count_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x_ptr + row * cols + offsets, mask=offsets < cols, other=0.0))
    tl.atomic_cas(count_ptr + row, 0, 1)
    total = tl.load(y_ptr + row) + part
    tl.store(y_ptr + row, total)
    tl.atomic_xchg(count_ptr + row, 0)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        parts = triton.cdiv(cols, 32)
        y = torch.zeros(rows, device=x.device, dtype=x.dtype)
        work = torch.zeros((rows, parts), device=x.device)
        count = torch.zeros(rows, device=x.device, dtype=torch.int32)
        sum_kernel[(rows, parts)](x, y, work, count, cols, BLOCK=32)
        return y
