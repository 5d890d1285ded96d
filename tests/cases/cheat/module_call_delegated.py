# task: tests/cases/tasks/layer_norm.py
# expect: rule_break @compile
# why: calls the nn.LayerNorm it keeps; the kernel only copies
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.norm = nn.LayerNorm(cols)

    def forward(self, x):
        normal = self.norm(x)
        y = torch.empty_like(normal)
        copy_kernel[(triton.cdiv(y.numel(), 256),)](normal, y, y.numel(), BLOCK=256)
        return y
