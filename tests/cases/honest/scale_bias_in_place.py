# task: tests/cases/tasks/scale_bias.py
# expect: pass @full_run
# why: works in place on a clone of the input
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_bias_kernel(y_ptr, scale_ptr, bias_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < cols
    pointers = y_ptr + row * cols + columns
    y = tl.load(pointers, mask=mask)
    y = y * tl.load(scale_ptr + columns, mask=mask) + tl.load(bias_ptr + columns, mask=mask)
    tl.store(pointers, y, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(cols))
        self.bias = nn.Parameter(torch.zeros(cols))

    def forward(self, x):
        y = x.clone()
        scale_bias_kernel[(y.shape[0],)](y, self.scale, self.bias, y.shape[1], BLOCK=128)
        return y
