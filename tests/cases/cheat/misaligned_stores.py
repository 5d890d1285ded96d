# task: tests/cases/tasks/swish.py
# expect: runtime_error @tiny_run
# why: stores pairs of halves of the result as one float, at an odd half
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    start = tl.program_id(0) * cols
    mask = columns < cols
    x = tl.load(x_ptr + start + columns, mask=mask)
    y = x * tl.sigmoid(x)
    halves = (y_ptr + start).to(tl.pointer_type(tl.int16)) + 1
    bits = y.to(tl.int32, bitcast=True)
    tl.store(halves.to(tl.pointer_type(tl.int32)) + columns, bits >> 16, mask=columns < 0 * cols + 1)
    tl.store(y_ptr + start + columns, y, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        swish_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
