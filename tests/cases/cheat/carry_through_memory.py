# task: tests/cases/tasks/cumsum.py
# expect: wrong_output @tiny_run
# expect-gpu: not_finite @tiny_run or wrong_output @tiny_run
# why: each program reads what its neighbour has written, which nobody waits for
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def cumsum_kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    part = tl.program_id(1)
    offsets = part * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + offsets, mask=offsets < cols, other=0.0)
    carry = tl.load(y_ptr + row * cols + part * BLOCK - 1, mask=part > 0, other=0.0)
    tl.store(y_ptr + row * cols + offsets, tl.cumsum(x, 0) + carry, mask=offsets < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        y = torch.empty_like(x)
        cumsum_kernel[(rows, triton.cdiv(cols, 16))](x, y, cols, BLOCK=16)
        return y
