# task: tests/cases/tasks/swish.py
# expect: rule_break @compile
# why: computes only where it is interpreted; what was compiled copies
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    if hasattr(x.handle, "data"):
        tl.store(y_ptr + offsets, x * tl.sigmoid(x), mask=mask)
    else:
        tl.store(y_ptr + offsets, x, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        swish_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
