# task: tests/cases/tasks/concat_columns.py
# expect: rule_break @tiny_run
# why: the library concatenates all rows but one, which the kernel copies
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_kernel(x_ptr, y_ptr, out_ptr, cols, more, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < cols), mask=offsets < cols)
    tl.store(out_ptr + cols + offsets, tl.load(y_ptr + offsets, mask=offsets < more), mask=offsets < more)


class ModelNew(nn.Module):
    def forward(self, x, y):
        row = torch.empty(1, x.shape[1] + y.shape[1], device=x.device, dtype=x.dtype)
        row_kernel[(1,)](x, y, row, x.shape[1], y.shape[1], BLOCK=triton.next_power_of_2(y.shape[1]))
        return torch.cat([row, torch.cat([x[1:], y[1:]], dim=1)], dim=0)
