# task: tests/cases/tasks/swish.py
# expect: pass @full_run
# why: a custom_op for CUDA alone that writes into what it is given
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(y_ptr + at, x / (1 + tl.exp(-x)), mask=at < n)


@torch.library.custom_op("mylib::swish_", mutates_args=("y",), device_types="cuda")
def swish(x: torch.Tensor, y: torch.Tensor) -> None:

    n = x.numel()
    swish_kernel[(triton.cdiv(n, 256),)](x, y, n, BLOCK=256)




class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        swish(x, y)
        return y
