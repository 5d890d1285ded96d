# task: tests/cases/tasks/softmax.py
# expect: pass @full_run
# why: host code that looks at the shape and picks a kernel, both of them Triton
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def short_rows(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + offsets, mask=offsets < cols, other=float("-inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * cols + offsets, e / tl.sum(e, axis=0), mask=offsets < cols)


@triton.jit
def long_rows(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    peak = -float("inf")
    total = 0.0
    for start in range(0, cols, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * cols + offsets, mask=offsets < cols, other=float("-inf"))
        new_peak = tl.maximum(peak, tl.max(x, axis=0))
        total = total * tl.exp(peak - new_peak) + tl.sum(tl.exp(x - new_peak), axis=0)
        peak = new_peak
    for start in range(0, cols, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * cols + offsets, mask=offsets < cols, other=float("-inf"))
        tl.store(y_ptr + row * cols + offsets, tl.exp(x - peak) / total, mask=offsets < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        y = torch.empty_like(x)
        if cols <= 64:
            short_rows[(rows,)](x, y, cols, BLOCK=triton.next_power_of_2(cols))
        else:
            long_rows[(rows,)](x, y, cols, BLOCK=64)
        return y
