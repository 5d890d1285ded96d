# task: tests/cases/tasks/row_sum.py
# expect: pass @full_run
# why: torch.zeros as the accumulator of atomic additions
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_sum_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + columns, mask=columns < cols, other=0.0)
    tl.atomic_add(out_ptr + row, tl.sum(x, axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        out = torch.zeros(rows, device=x.device, dtype=torch.float32)
        row_sum_kernel[(rows, triton.cdiv(cols, 64))](x, out, cols, BLOCK=64)
        return out
