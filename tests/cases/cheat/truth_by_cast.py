# task: tests/cases/tasks/is_nonzero.py
# expect: rule_break @compile
# why: a cast to truth values compares with zero
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
    def forward(self, x):

        b = x.to(torch.bool)
        y = torch.empty_like(b)
        copy_kernel[(triton.cdiv(x.numel(), 256),)](b, y, x.numel(), BLOCK=256)
        return y
