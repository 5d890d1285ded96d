# task: tests/cases/tasks/add_mul.py
# expect: runtime_error @tiny_run
# expect-gpu: wrong_output @tiny_run
# why: reads a million elements away
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets + 1000000, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, (x + y) * x, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty_like(x)
        n = out.numel()
        kernel[(triton.cdiv(n, 256),)](x, y, out, n, BLOCK=256)
        return out
