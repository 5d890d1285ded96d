# task: tests/cases/tasks/row_sum.py
# expect: pass @full_run
# why: more programs than rows; a mask of a scalar and a vector condition
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, out_ptr, rows, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + offsets, mask=(row < rows) & (offsets < cols), other=0.0)
    tl.store(out_ptr + row, tl.sum(x, axis=0), mask=row < rows)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        out = torch.empty(rows, device=x.device, dtype=x.dtype)
        sum_kernel[(rows + 3,)](x, out, rows, cols, BLOCK=triton.next_power_of_2(cols))
        return out
