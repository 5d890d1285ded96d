# task: tests/cases/tasks/softmax.py
# expect: wrong_output @tiny_run
# why: normalises columns instead of rows
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, rows, cols, BLOCK: tl.constexpr):
    column = tl.program_id(0)
    row = tl.arange(0, BLOCK)
    mask = row < rows
    x = tl.load(x_ptr + row * cols + column, mask=mask, other=-float("inf"))
    x = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * cols + column, x / tl.sum(x, axis=0), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        y = torch.empty_like(x)
        softmax_kernel[(cols,)](x, y, rows, cols, BLOCK=triton.next_power_of_2(rows))
        return y
