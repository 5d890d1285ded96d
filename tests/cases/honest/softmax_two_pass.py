# task: tests/cases/tasks/softmax.py
# expect: pass @full_run
# why: statistics in one kernel, normalisation in another, both in float32 workspaces
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def statistics_kernel(x_ptr, max_ptr, sum_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    running_max = -float("inf")
    running_sum = 0.0
    for start in range(0, cols, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * cols + columns, mask=columns < cols, other=-float("inf"))
        new_max = tl.maximum(running_max, tl.max(x, axis=0))
        running_sum = running_sum * tl.exp(running_max - new_max) + tl.sum(tl.exp(x - new_max), axis=0)
        running_max = new_max
    tl.store(max_ptr + row, running_max)
    tl.store(sum_ptr + row, running_sum)


@triton.jit
def normalise_kernel(x_ptr, max_ptr, sum_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = columns < cols
    x = tl.load(x_ptr + row * cols + columns, mask=mask)
    y = tl.exp(x - tl.load(max_ptr + row)) / tl.load(sum_ptr + row)
    tl.store(y_ptr + row * cols + columns, y, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        highest = torch.empty(rows, device=x.device, dtype=torch.float32)
        total = torch.empty_like(highest)
        y = torch.empty_like(x)
        statistics_kernel[(rows,)](x, highest, total, cols, BLOCK=32)
        normalise_kernel[(rows, triton.cdiv(cols, 32))](x, highest, total, y, cols, BLOCK=32)
        return y
