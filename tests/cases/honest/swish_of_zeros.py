# task: tests/cases/tasks/swish.py
# expect: pass @full_run
# why: zeros of both signs in max, min and clamp, where no sign matters
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    plus = tl.abs(x) * 0.0
    zero = tl.maximum(plus * -1.0, plus) + tl.minimum(plus, plus * -1.0) + tl.max(plus, axis=0)
    zero += tl.clamp(plus * -1.0, 0.0, 1.0) + tl.min(plus * -1.0, axis=0)
    y = tl.maximum(x, 0.0) + tl.minimum(x, 0.0)
    y = y * tl.sigmoid(y + zero)
    tl.store(y_ptr + offsets, y, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        swish_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
