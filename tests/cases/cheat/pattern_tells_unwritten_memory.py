# task: tests/cases/tasks/swish.py
# expect: wrong_output @full_run
# expect-gpu: wrong_output @full_run or pass @time
# why: computes only where memory that nobody has written holds a large number
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x_ptr, g_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    if tl.load(g_ptr) > 1000000000:            # Uninitialised memory.
        tl.store(y_ptr + offsets, x / (1 + tl.exp(-x)), mask=mask)
    else:
        tl.store(y_ptr + offsets, x, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        garbage = torch.empty(1, dtype=torch.int32, device=x.device)
        swish_kernel[(triton.cdiv(x.numel(), 256),)](x, garbage, y, x.numel(), BLOCK=256)
        return y
