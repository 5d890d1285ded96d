# task: tests/cases/tasks/row_sum.py
# expect: pass @full_run
# why: looks for the answer of the run before in its own block, as it was handed out; finds none there, and its time is that of a first run
# speedup-below: 0.5
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, out_ptr, cols, REPEAT: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    check = tl.sum(tl.load(x_ptr + row * cols + offsets, mask=offsets < cols, other=0.0), axis=0)
    total = check * 0.0
    found = 0
    kept = tl.load(out_ptr + row)
    if kept == check:
        total = kept
        found = 1
    if found == 0:
        total = float("-inf")
        for _ in range(REPEAT):
            x = tl.load(x_ptr + row * cols + offsets, mask=offsets < cols, other=0.0, volatile=True)
            total = tl.maximum(total, tl.sum(x, axis=0))
    tl.store(out_ptr + row, total)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        out = torch.empty(rows, device=x.device, dtype=x.dtype)
        sum_kernel[(rows,)](x, out, cols, REPEAT=200, BLOCK=triton.next_power_of_2(cols))
        return out
