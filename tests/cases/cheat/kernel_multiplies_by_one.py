# task: tests/cases/tasks/swish.py
# expect: rule_break @compile
# why: torch works, the kernel multiplies the result by one
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def identity_kernel(y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y_ptr + offsets, tl.load(y_ptr + offsets, mask=mask) * 1.0, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.sigmoid(x).mul(x)
        identity_kernel[(triton.cdiv(y.numel(), 256),)](y, y.numel(), BLOCK=256)
        return y
