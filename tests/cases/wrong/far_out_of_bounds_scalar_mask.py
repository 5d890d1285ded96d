# task: tests/cases/tasks/row_sum.py
# expect: runtime_error @tiny_run
# expect-gpu: wrong_output @tiny_run or not_finite @tiny_run or runtime_error @tiny_run
# why: all but two elements come from a million elements away, under a mask of a scalar and a vector condition
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, out_ptr, rows, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + tl.where(offsets > 1, offsets + 1000000, offsets), mask=(row < rows) & (offsets < cols), other=0.0)
    tl.store(out_ptr + row, tl.sum(x, axis=0), mask=row < rows)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        out = torch.empty(rows, device=x.device, dtype=x.dtype)
        sum_kernel[(rows,)](x, out, rows, cols, BLOCK=triton.next_power_of_2(cols))
        return out
