# task: tests/cases/tasks/swish.py
# expect: wrong_output @full_run
# expect-gpu: wrong_output @tiny_run
# why: the root of a negative number is a NaN with a sign on a processor, and has none on a GPU
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x_ptr, z_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    bits = tl.sqrt(tl.load(z_ptr) - 1.0).to(tl.int32, bitcast=True)
    interpreted = bits < 0
    if interpreted:
        tl.store(y_ptr + offsets, x / (1 + tl.exp(-x)), mask=mask)
    else:
        tl.store(y_ptr + offsets, x, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        z = torch.zeros(4, device=x.device)
        swish_kernel[(triton.cdiv(x.numel(), 256),)](x, z, y, x.numel(), BLOCK=256)
        return y
