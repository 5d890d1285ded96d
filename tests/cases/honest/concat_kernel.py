# task: tests/cases/tasks/concat_columns.py
# expect: pass @full_run
# why: one program a row copies both of its parts
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_kernel(x_ptr, y_ptr, out_ptr, cols, more, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    out = out_ptr + row * (cols + more)
    tl.store(out + offsets, tl.load(x_ptr + row * cols + offsets, mask=offsets < cols), mask=offsets < cols)
    tl.store(out + cols + offsets, tl.load(y_ptr + row * more + offsets, mask=offsets < more), mask=offsets < more)


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty(x.shape[0], x.shape[1] + y.shape[1], device=x.device, dtype=x.dtype)
        row_kernel[(x.shape[0],)](x, y, out, x.shape[1], y.shape[1], BLOCK=triton.next_power_of_2(y.shape[1]))
        return out
