# task: tests/cases/tasks/swish.py
# expect: pass @full_run
# why: helper @triton.jit functions and a docstring that says pass, two-pass and torch.softmax
"""Swish in one pass. (No two-pass scheme is needed; nothing here calls torch.sigmoid(x) // torch.softmax.)"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sigmoid(x):
    # try: tl.sigmoid would do as well
    return 1.0 / (1.0 + tl.exp(-x))


@triton.jit
def swish(x):
    return x * sigmoid(x)


@triton.jit
def swish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """Each program handles BLOCK elements; pass."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y_ptr + offsets, swish(tl.load(x_ptr + offsets, mask=mask)), mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        y = torch.empty_like(x)
        blocks = (x.numel() + 511) // 512
        swish_kernel[(blocks,)](x, y, x.numel(), BLOCK=512)
        return y
