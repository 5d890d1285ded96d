# task: tests/cases/tasks/cumsum.py
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
def cumsum_kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < cols
    x = tl.load(x_ptr + row * cols + columns, mask=mask, other=0.0)
    x = tl.where(columns == 0, -x, x)
    tl.store(y_ptr + row * cols + columns, -tl.associative_scan(x, 0, minus), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        y = torch.empty_like(x)
        cumsum_kernel[(rows,)](x, y, cols, BLOCK=triton.next_power_of_2(cols))
        return y
