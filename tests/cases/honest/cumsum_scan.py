# task: tests/cases/tasks/cumsum.py
# expect: pass @full_run
# why: tl.cumsum along an axis
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def cumsum_kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < cols
    x = tl.load(x_ptr + row * cols + columns, mask=mask, other=0.0)
    tl.store(y_ptr + row * cols + columns, tl.cumsum(x, axis=0), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        y = torch.empty_like(x)
        cumsum_kernel[(rows,)](x, y, cols, BLOCK=triton.next_power_of_2(cols))
        return y
