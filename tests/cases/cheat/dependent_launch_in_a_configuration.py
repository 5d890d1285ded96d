# task: tests/cases/tasks/add_mul.py
# expect: unsupported @compile
# why: one configuration of the autotuner lets the launch begin before the one before it has ended
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


@triton.autotune([triton.Config({"BLOCK": 128}), triton.Config({"BLOCK": 256, "launch_pdl": True})], key=["n"])
@triton.jit
def mul_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x * y, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x, y):
        total, out = torch.empty_like(x), torch.empty_like(x)
        add_kernel[(triton.cdiv(x.numel(), 128),)](x, y, total, x.numel(), BLOCK=128)
        mul_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](total, x, out, x.numel())
        return out
