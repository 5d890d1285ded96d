# task: tests/cases/tasks/swish.py
# expect: wrong_output @tiny_run
# why: host code keeps the tensor of the first call, and computes on that ever after
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, x * tl.sigmoid(x), mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.x = None

    def forward(self, x):
        if self.x is None:
            self.x = x
        y = torch.empty_like(self.x)
        swish_kernel[(triton.cdiv(x.numel(), 256),)](self.x, y, x.numel(), BLOCK=256)
        return y
