# task: tests/cases/tasks/swish.py
# expect: compile_error @compile
# why: to the compiler a tensor is true, whatever it holds; the interpreter knows its number
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.constexpr_function
def truth(x):
    return 1 if x else 0


@triton.jit
def swish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    zero = tl.program_id(0) - tl.program_id(0)
    compiled: tl.constexpr = truth(zero)
    if compiled == 1:
        tl.store(y_ptr, 0.0, mask=n < 0)
    else:
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
        tl.store(y_ptr + offsets, x * tl.sigmoid(x), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        swish_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
