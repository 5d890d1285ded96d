# task: tests/cases/tasks/swish.py
# expect: pass @full_run
# why: hints of all kinds that are true, on numbers, tiles, pointers and masks
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    start = tl.multiple_of(tl.program_id(0) * cols, 2)
    columns = tl.max_contiguous(tl.multiple_of(columns, BLOCK), BLOCK)
    mask = tl.max_constancy(columns < cols, 2)
    x = tl.load(tl.multiple_of(x_ptr, 16) + start + columns, mask=mask)
    tl.store(tl.max_contiguous(y_ptr + start + columns, 4), x * tl.sigmoid(x), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        swish_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
