# task: tests/cases/tasks/row_sum.py
# expect: pass @full_run
# why: partial sums in a workspace tensor, a second kernel adds them
import torch
import torch.nn as nn
import triton
import triton.language as tl

PARTS = tl.constexpr(4)


@triton.jit
def partial_kernel(x_ptr, work_ptr, cols, chunk, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    part = tl.program_id(1)
    columns = part * chunk + tl.arange(0, BLOCK)
    mask = (tl.arange(0, BLOCK) < chunk) & (columns < cols)
    x = tl.load(x_ptr + row * cols + columns, mask=mask, other=0.0)
    tl.store(work_ptr + row * PARTS + part, tl.sum(x, axis=0))


@triton.jit
def finish_kernel(work_ptr, out_ptr):
    row = tl.program_id(0)
    parts = tl.load(work_ptr + row * PARTS + tl.arange(0, PARTS))
    tl.store(out_ptr + row, tl.sum(parts, axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        work = torch.empty((rows, 4), device=x.device, dtype=x.dtype)
        out = torch.empty((rows,), device=x.device, dtype=x.dtype)
        chunk = triton.cdiv(cols, 4)
        partial_kernel[(rows, 4)](x, work, cols, chunk, BLOCK=triton.next_power_of_2(chunk))
        finish_kernel[(rows,)](work, out)
        return out
