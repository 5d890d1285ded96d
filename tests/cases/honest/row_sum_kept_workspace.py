# task: tests/cases/tasks/row_sum.py
# expect: pass @full_run
# why: keeps its workspace on the module from call to call, and fills it anew each time
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def halves_kernel(x_ptr, work_ptr, cols, half, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    which = tl.program_id(1)
    offsets = tl.arange(0, BLOCK)
    columns = which * half + offsets
    x = tl.load(x_ptr + row * cols + columns, mask=(offsets < half) & (columns < cols), other=0.0)
    tl.store(work_ptr + row * 2 + which, tl.sum(x, axis=0))


@triton.jit
def add_kernel(work_ptr, out_ptr):
    row = tl.program_id(0)
    tl.store(out_ptr + row, tl.load(work_ptr + row * 2) + tl.load(work_ptr + row * 2 + 1))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.work = None

    def forward(self, x):
        rows, cols = x.shape
        if self.work is None or self.work.shape[0] != rows:
            self.work = torch.empty((rows, 2), device=x.device, dtype=x.dtype)
        half = (cols + 1) // 2
        out = torch.empty(rows, device=x.device, dtype=x.dtype)
        halves_kernel[(rows, 2)](x, self.work, cols, half, BLOCK=triton.next_power_of_2(half))
        add_kernel[(rows,)](self.work, out)
        torch.cuda.synchronize()
        return out
