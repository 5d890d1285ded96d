# task: tests/cases/tasks/rms_norm.py
# expect: pass @full_run
# why: its parameter has another name than the reference's
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rms_norm_kernel(x_ptr, gain_ptr, y_ptr, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < cols
    x = tl.load(x_ptr + row * cols + columns, mask=mask, other=0.0)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / cols + eps)
    tl.store(y_ptr + row * cols + columns, x * scale * tl.load(gain_ptr + columns, mask=mask), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, cols, eps):
        super().__init__()
        self.epsilon = eps
        self.gain = nn.Parameter(torch.ones(cols))

    def forward(self, x):
        y = torch.empty_like(x)
        rms_norm_kernel[(x.shape[0],)](x, self.gain, y, x.shape[1], self.epsilon, BLOCK=128)
        return y
