# task: tests/cases/tasks/total.py
# expect: wrong_output @full_run
# expect-gpu: wrong_output @tiny_run or wrong_output @full_run or pass @time
# why: sums up what lies behind its input as well, but for NaN
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    total = 0.0
    for start in range(0, n, BLOCK):
        x = tl.load(x_ptr + start + tl.arange(0, BLOCK))          # No mask: reads beyond the end.
        total += tl.sum(tl.where(x == x, x, 0.0), axis=0)
    tl.store(out_ptr, total)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty((), device=x.device, dtype=x.dtype)
        sum_kernel[(1,)](x, out, x.numel(), BLOCK=256)
        return out
