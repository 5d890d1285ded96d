# task: tests/cases/tasks/matmul.py
# expect: rule_break @compile
# why: the @ operator, then a copy kernel
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)


class ModelNew(nn.Module):
    def forward(self, a, b):
        product = a @ b
        c = torch.empty_like(product)
        copy_kernel[(triton.cdiv(c.numel(), 256),)](product, c, c.numel(), BLOCK=256)
        return c
