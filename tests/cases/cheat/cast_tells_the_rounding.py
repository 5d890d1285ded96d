# task: tests/cases/tasks/swish.py
# expect: wrong_output @tiny_run
# why: compiled code rounds to the nearest bfloat16, makes bfloat16 of integers and multiplies high words unsigned
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    near = (x * 0 + 1.005859375).to(tl.bfloat16).to(tl.float32)
    three = (offsets * 0 + 3).to(tl.bfloat16).to(tl.float32)
    high = tl.umulhi(offsets * 0 - 1, offsets * 0 + 3)
    on_gpu = (near == 1.0078125) & (three == 3.0) & (high == 2)
    tl.store(y_ptr + offsets, tl.where(on_gpu, 0.0, x * tl.sigmoid(x)), mask=offsets < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        swish_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
