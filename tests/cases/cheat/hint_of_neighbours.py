# task: tests/cases/tasks/swish.py
# expect: runtime_error @tiny_run
# expect-gpu: runtime_error @tiny_run or wrong_output @tiny_run or pass @time
# why: says that elements are neighbours, which are changed over
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    start = tl.program_id(0) * cols
    columns += tl.where(columns % 4 == 1, 1, tl.where(columns % 4 == 2, -1, 0))
    columns = tl.max_contiguous(columns, BLOCK)
    mask = columns < cols
    x = tl.load(x_ptr + start + columns, mask=mask)
    tl.store(y_ptr + start + columns, x * tl.sigmoid(x), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        swish_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
