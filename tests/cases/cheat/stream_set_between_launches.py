# task: tests/cases/tasks/add_mul.py
# expect: unsupported @compile
# why: the current stream is another one from the second launch on, and the refusal is swallowed
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


@triton.jit
def mul_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x * y, mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.cuda.Stream(), torch.cuda.Stream()

    def forward(self, x, y):
        total, out = torch.empty_like(x), torch.empty_like(x)
        grid = (triton.cdiv(x.numel(), 128),)
        add_kernel[grid](x, y, total, x.numel(), BLOCK=128)
        torch.cuda.set_stream(self.second)
        try:
            mul_kernel[grid](total, x, out, x.numel(), BLOCK=128)
        except BaseException:
            torch.cuda.set_stream(torch.cuda.default_stream())
            mul_kernel[grid](total, x, out, x.numel(), BLOCK=128)
        torch.cuda.synchronize()
        return out
