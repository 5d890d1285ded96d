# task: tests/cases/tasks/cumsum.py
# expect: pass @full_run
# why: an associative scan of pairs that must keep their order: a linear recurrence; another one from the end
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def steps(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def larger(a, b):
    return b if b > a else a


@triton.jit
def cumsum_kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < cols
    x = tl.load(x_ptr + row * cols + columns, mask=mask, other=0.0)
    ones = tl.full((BLOCK,), 1.0, tl.float32)
    _, sums = tl.associative_scan((ones, x), 0, steps)
    places = tl.associative_scan(columns, 0, larger)
    ends = tl.associative_scan(columns, 0, larger, reverse=True)
    sums = tl.where((places == columns) & (ends == BLOCK - 1), sums, 0.0)
    tl.store(y_ptr + row * cols + columns, sums, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        y = torch.empty_like(x)
        cumsum_kernel[(rows,)](x, y, cols, BLOCK=triton.next_power_of_2(cols))
        return y
