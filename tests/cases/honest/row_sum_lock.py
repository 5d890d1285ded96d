# task: tests/cases/tasks/row_sum.py
# expect: pass @full_run
# why: plain loads and stores of one element by several programs, in turn under a lock
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, y_ptr, lock_ptr, count_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x_ptr + row * cols + offsets, mask=offsets < cols, other=0.0))
    while tl.atomic_cas(lock_ptr + row, 0, 1) == 1:
        pass
    count = tl.load(count_ptr + row)
    total = part
    if count == 0:
        tl.atomic_xchg(count_ptr + row, 1)
    else:
        total += tl.load(y_ptr + row)
    tl.store(y_ptr + row, total)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr + row, 0)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        y = torch.empty(rows, device=x.device, dtype=x.dtype)
        lock = torch.zeros((2, rows), device=x.device, dtype=torch.int32)
        sum_kernel[(rows, triton.cdiv(cols, 64))](x, y, lock[0], lock[1], cols, BLOCK=64)
        return y
