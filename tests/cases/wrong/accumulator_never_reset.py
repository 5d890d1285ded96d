# task: tests/cases/tasks/row_sum.py
# expect: wrong_output @tiny_run
# why: atomics add to a buffer that is zero before the first call only
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_rows_kernel(x_ptr, sums_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, cols, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * cols + offsets, mask=offsets < cols, other=0.0)
        tl.atomic_add(sums_ptr + row, tl.sum(x, axis=0))


@triton.jit
def copy_kernel(sums_ptr, out_ptr):
    row = tl.program_id(0)
    tl.store(out_ptr + row, tl.load(sums_ptr + row))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("sums", torch.zeros(4096))

    def forward(self, x):
        rows, cols = x.shape
        out = torch.empty(rows, device=x.device, dtype=x.dtype)
        add_rows_kernel[(rows,)](x, self.sums, cols, BLOCK=128)
        copy_kernel[(rows,)](self.sums, out)
        return out
