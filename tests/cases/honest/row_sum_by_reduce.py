# task: tests/cases/tasks/row_sum.py
# expect: pass @full_run
# why: sums by a function of its own, over both axes of a tile, one of them kept
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def plus(a, b):
    return a + b


@triton.jit
def row_sum_kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + columns, mask=columns < cols, other=0.0)
    tile = tl.reshape(x, (BLOCK // 16, 16))
    parts = tl.reduce(tile, 1, plus, keep_dims=True)
    tl.store(y_ptr + row, tl.reduce(parts, None, plus))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
        row_sum_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
