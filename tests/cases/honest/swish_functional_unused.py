# task: tests/cases/tasks/swish.py
# expect: pass @full_run
# why: imports torch.nn.functional and math and uses neither
import math
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, x * tl.sigmoid(x), mask=mask)


def swish(x: torch.Tensor) -> torch.Tensor:
    assert x.is_cuda, "needs a GPU"
    flat = x.contiguous().view(-1)
    y = torch.empty_like(flat)
    swish_kernel[(triton.cdiv(flat.numel(), 1024),)](flat, y, flat.numel(), BLOCK=1024)
    return y.view(x.shape)


class ModelNew(nn.Module):
    def forward(self, x):
        return swish(x)
