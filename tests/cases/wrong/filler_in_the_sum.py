# task: tests/cases/tasks/softmax.py
# expect: wrong_output @tiny_run
# why: masked columns count as exp(0) in the denominator
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < cols
    x = tl.load(x_ptr + row * cols + columns, mask=mask, other=0.0)
    x = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * cols + columns, x / tl.sum(x, axis=0), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        y = torch.empty_like(x)
        softmax_kernel[(rows,)](x, y, cols, BLOCK=128)
        return y
