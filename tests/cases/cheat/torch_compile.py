# task: tests/cases/tasks/swish.py
# expect: rule_break @compile
# why: torch.compile writes the kernel
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)


@torch.compile
def swish(x):
    return x * torch.sigmoid(x)


class ModelNew(nn.Module):
    def forward(self, x):
        z = swish(x)
        y = torch.empty_like(z)
        copy_kernel[(triton.cdiv(y.numel(), 256),)](z, y, y.numel(), BLOCK=256)
        return y
