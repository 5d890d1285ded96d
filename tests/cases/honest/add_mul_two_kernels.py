# task: tests/cases/tasks/add_mul.py
# expect: pass @full_run
# why: two kernels and a workspace; some memory is padded and never read
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask), mask=mask)


@triton.jit
def mul_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    out = tl.load(out_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, out * tl.load(x_ptr + offsets, mask=mask), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x, y):
        n = x.numel()
        workspace = torch.empty(triton.next_power_of_2(n), device=x.device, dtype=x.dtype)
        grid = (triton.cdiv(n, 256),)
        add_kernel[grid](x, y, workspace, n, BLOCK=256)
        mul_kernel[grid](x, workspace, n, BLOCK=256)
        return workspace[:n].view_as(x)
