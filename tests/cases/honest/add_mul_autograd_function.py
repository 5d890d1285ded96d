# task: tests/cases/tasks/add_mul.py
# expect: pass @full_run
# why: the kernel sits in a torch.autograd.Function
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_mul_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, (x + y) * x, mask=mask)


class AddMul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        out = torch.empty_like(x)
        add_mul_kernel[(triton.cdiv(x.numel(), 128),)](x, y, out, x.numel(), BLOCK=128)
        return out


class ModelNew(nn.Module):
    def forward(self, x, y):
        return AddMul.apply(x, y)
