# task: tests/cases/tasks/row_sum.py
# expect: wrong_output @tiny_run
# why: right where elements are combined one after the other: a - b is not associative
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def minus(a, b):
    return a - b


@triton.jit
def row_sum_kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + columns, mask=columns < cols, other=0.0)
    x = tl.where(columns == 0, -x, x)
    tl.store(y_ptr + row, -tl.reduce(x, 0, minus))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
        row_sum_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
