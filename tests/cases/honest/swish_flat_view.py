# task: tests/cases/tasks/swish.py
# expect: pass @full_run
# why: works on a flat view, a contiguous copy where one is needed, and gives the shape back
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """A two-pass sounding docstring; the word pass alone must not matter."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    tl.store(y_ptr + offsets, x / (1.0 + tl.exp(-x)), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        # Were x transposed we would try to make it contiguous here; it costs nothing when it is.
        flat = x.contiguous().view(-1)
        y = torch.empty_like(flat)
        swish_kernel[lambda meta: (triton.cdiv(flat.numel(), meta["BLOCK"]),)](flat, y, flat.numel(), BLOCK=128)
        return y.reshape(x.shape)
