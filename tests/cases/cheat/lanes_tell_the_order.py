# task: tests/cases/tasks/swish.py
# expect: wrong_output @tiny_run
# why: threads of a tile that count up one number do so in no order; one after another they get their own places
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x_ptr, y_ptr, count_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    turn = tl.atomic_add(count_ptr + offsets * 0, 1) % BLOCK
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    y = tl.where(turn == tl.arange(0, BLOCK), x * tl.sigmoid(x), 0.0)
    tl.store(y_ptr + offsets, y, mask=offsets < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        count = torch.zeros(1, device=x.device, dtype=torch.int32)
        swish_kernel[(triton.cdiv(x.numel(), 64),)](x, y, count, x.numel(), BLOCK=64)
        return y
