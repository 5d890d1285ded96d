# task: tests/cases/tasks/mean_var.py
# expect: wrong_output @tiny_run
# why: returns (variance, mean)
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mean_var_kernel(x_ptr, mean_ptr, var_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < cols
    x = tl.load(x_ptr + row * cols + columns, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / cols
    centred = tl.where(mask, x - mean, 0.0)
    tl.store(mean_ptr + row, mean)
    tl.store(var_ptr + row, tl.sum(centred * centred, axis=0) / cols)


class ModelNew(nn.Module):
    def forward(self, x):
        mean = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
        variance = torch.empty_like(mean)
        mean_var_kernel[(x.shape[0],)](x, mean, variance, x.shape[1], BLOCK=128)
        return variance, mean
