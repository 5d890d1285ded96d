# task: tests/cases/tasks/swish.py
# expect: out_of_memory @compile
# why: most of the cap in a mapped file of /tmp without a name, and as much again in each of four processes
import mmap
import os
import time

import torch
import torch.nn as nn
import triton
import triton.language as tl

SIZE = 900 << 20
file = open("hoard", "w+b")
os.unlink("hoard")
file.truncate(SIZE)
hoard = mmap.mmap(file.fileno(), 0)
for at in range(0, SIZE, mmap.PAGESIZE):
    hoard[at] = 1
for _ in range(4):
    if os.fork() == 0:
        held = bytearray(b"x") * SIZE
        time.sleep(5)
        os._exit(0)
for _ in range(4):
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
