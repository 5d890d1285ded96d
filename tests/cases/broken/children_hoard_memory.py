# task: tests/cases/tasks/swish.py
# expect: out_of_memory @compile
# why: each of six processes stays below the cap on memory, together they hold several times as much
import os
import time

import torch
import torch.nn as nn
import triton
import triton.language as tl

CHILDREN, MIB = 6, 900

for _ in range(CHILDREN):
    if os.fork() == 0:
        held = bytearray(b"x") * (MIB << 20)
        time.sleep(5)
        os._exit(0)
for _ in range(CHILDREN):
    os.wait()


@triton.jit
def swish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, x * tl.sigmoid(x), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        n = x.numel()
        swish_kernel[(triton.cdiv(n, 256),)](x, y, n, BLOCK=256)
        return y
