# task: tests/cases/tasks/trunc_scale.py
# expect: rule_break @compile
# why: numbers with fractions are scattered into whole ones, a row at a time
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, x * 3.0, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        scale_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        zeros = torch.zeros(x.shape, dtype=torch.int32, device=x.device)
        return torch.select_scatter(zeros[None], y, 0, 0)[0].to(x.dtype)
