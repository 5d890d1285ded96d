# task: tests/cases/tasks/rms_norm.py
# expect: wrong_output @tiny_run
# why: uses 1e-6 where the task says 1e-3
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rms_norm_kernel(x_ptr, w_ptr, y_ptr, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < cols
    x = tl.load(x_ptr + row * cols + columns, mask=mask, other=0.0)
    y = x * tl.rsqrt(tl.sum(x * x, axis=0) / cols + eps)
    tl.store(y_ptr + row * cols + columns, y * tl.load(w_ptr + columns, mask=mask), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, cols, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))
        self.eps = 1e-6

    def forward(self, x):
        y = torch.empty_like(x)
        rms_norm_kernel[(x.shape[0],)](x, self.weight, y, x.shape[1], self.eps, BLOCK=128)
        return y
