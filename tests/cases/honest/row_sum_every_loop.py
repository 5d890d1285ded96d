# task: tests/cases/tasks/row_sum.py
# expect: pass @full_run
# why: loops of every kind, and their counters wherever a number may stand
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def part(x_ptr, start, cols, BLOCK: tl.constexpr):
    offsets = start + tl.arange(0, BLOCK)
    return tl.load(x_ptr + offsets, mask=offsets < cols, other=0.0)


@triton.jit
def sum_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr, PARTS: tl.constexpr):
    row = tl.program_id(0)
    x_ptr += row * cols
    first, last = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    blocks = tl.cdiv(cols, BLOCK)
    half = blocks // 2
    for i in range(half):
        first += part(x_ptr, i * BLOCK, cols, BLOCK)
    for i in tl.range(blocks - 1, half - 1, -1, num_stages=2):
        last += part(x_ptr, i * BLOCK, cols, BLOCK)
    total = tl.sum(first) + tl.sum(last)
    for j in tl.static_range(PARTS):
        for k in range(j, j + 1):
            weight = 1 if k == 0 else 0 * k
            total += tl.sum(tl.full((BLOCK,), k, tl.float32)) * weight
    for start in range(0, cols, cols):
        if start != 0 or start < 0:
            total = float("nan")
    i = 0
    while i < 2:
        i += 1
    tl.store(out_ptr + row, total * i / 2)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        out = torch.empty(rows, device=x.device, dtype=x.dtype)
        sum_kernel[(rows,)](x, out, cols, BLOCK=16, PARTS=3)
        return out
