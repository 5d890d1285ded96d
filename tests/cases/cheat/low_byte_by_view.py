# task: tests/cases/tasks/low_byte.py
# expect: rule_break @compile
# why: the remainder by 256 is read out of the bytes
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

        b = x.view(torch.uint8).view(*x.shape, 8)[..., 0].contiguous()
        y = torch.empty_like(x)
        copy_kernel[(triton.cdiv(x.numel(), 256),)](b, y, x.numel(), BLOCK=256)
        return y
