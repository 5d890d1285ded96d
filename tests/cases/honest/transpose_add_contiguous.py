# task: tests/cases/tasks/transpose_add.py
# expect: pass @full_run
# why: x.t().contiguous() before the launch
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, rows, cols, stride_r, stride_c, BLOCK: tl.constexpr):
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    mask = (r < rows) & (c < cols)
    x = tl.load(x_ptr + r * stride_r + c * stride_c, mask=mask)
    y = tl.load(y_ptr + r * cols + c, mask=mask)
    tl.store(out_ptr + r * cols + c, x + y, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x, y):
        xt = x.t().contiguous()
        rows, cols = y.shape
        out = torch.empty_like(y)
        add_kernel[(triton.cdiv(rows, 32), triton.cdiv(cols, 32))](xt, y, out, rows, cols, cols, 1, BLOCK=32)
        return out
