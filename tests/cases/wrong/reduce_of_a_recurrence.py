# task: tests/cases/tasks/row_sum.py
# expect: wrong_output @tiny_run
# why: associative, but a reduction combines lanes that are no neighbours: operands change places
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def steps(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def row_sum_kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + columns, mask=columns < cols, other=0.0)
    halved = tl.where(columns == BLOCK // 2, 0.5, 1.0)
    _, total = tl.reduce((halved, tl.where(columns < BLOCK // 2, 2.0 * x, x)), 0, steps)
    tl.store(y_ptr + row, total)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
        row_sum_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
