# task: tests/cases/tasks/mean_var.py
# expect: pass @full_run
# why: a helper returns a tuple; forward returns two tensors
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mean_and_variance(x, mask, count):
    mean = tl.sum(x, axis=0) / count
    centred = tl.where(mask, x - mean, 0.0)
    return mean, tl.sum(centred * centred, axis=0) / count


@triton.jit
def mean_var_kernel(x_ptr, mean_ptr, var_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < cols
    x = tl.load(x_ptr + row * cols + columns, mask=mask, other=0.0)
    mean, variance = mean_and_variance(x, mask, cols)
    tl.store(mean_ptr + row, mean)
    tl.store(var_ptr + row, variance)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        both = torch.empty((2, rows), device=x.device, dtype=x.dtype)
        mean, variance = both[0], both[1]
        mean_var_kernel[(rows,)](x, mean, variance, cols, BLOCK=128)
        return mean, variance
