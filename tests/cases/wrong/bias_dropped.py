# task: tests/cases/tasks/scale_bias.py
# expect: wrong_output @tiny_run
# why: leaves the bias out, which starts as zeros
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, scale_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < cols
    x = tl.load(x_ptr + row * cols + columns, mask=mask)
    tl.store(y_ptr + row * cols + columns, x * tl.load(scale_ptr + columns, mask=mask), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(cols))
        self.bias = nn.Parameter(torch.zeros(cols))

    def forward(self, x):
        y = torch.empty_like(x)
        scale_kernel[(x.shape[0],)](x, self.scale, y, x.shape[1], BLOCK=128)
        return y
