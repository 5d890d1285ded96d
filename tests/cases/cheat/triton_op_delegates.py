# task: tests/cases/tasks/swish.py
# expect: rule_break @compile
# why: an operator of its own has the library compute most of it
import torch
import torch.nn as nn
import triton
import triton.language as tl
from torch.library import triton_op, wrap_triton


@triton.jit
def swish_kernel(x_ptr, z_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(y_ptr + at, x * tl.load(z_ptr + at, mask=at < n, other=0.0), mask=at < n)


@triton_op("mylib::swish", mutates_args={})
def swish(x: torch.Tensor) -> torch.Tensor:
    z = torch.sigmoid(x)
    y = torch.empty_like(x)
    n = x.numel()
    wrap_triton(swish_kernel)[(triton.cdiv(n, 256),)](x, z, y, n, BLOCK=256)
    return y


class ModelNew(nn.Module):
    def forward(self, x):
        return swish(x)
