# task: tests/cases/tasks/swish.py
# expect: rule_break @compile
# why: asks Triton's own settings whether it is interpreted
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    if tl.core.knobs.runtime.interpret:
        x = x * tl.sigmoid(x)
    tl.store(y_ptr + offsets, x, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        swish_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
