# task: tests/cases/tasks/swish.py
# expect: pass @full_run
# why: the launch is an operator of its own for torch.compile (triton_op, wrap_triton)
import torch
import torch.nn as nn
import triton
import triton.language as tl
from torch.library import triton_op, wrap_triton


@triton.jit
def swish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(y_ptr + at, x / (1 + tl.exp(-x)), mask=at < n)


@triton_op("mylib::swish", mutates_args={})
def swish(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    n = x.numel()
    wrap_triton(swish_kernel)[(triton.cdiv(n, 256),)](x, y, n, BLOCK=256)
    return y


class ModelNew(nn.Module):
    def forward(self, x):
        return swish(x)
