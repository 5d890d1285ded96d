# task: tests/cases/tasks/swish.py
# expect: timeout @compile
# why: as many processes as it may have, and each of them tries to have more
import os

import torch
import torch.nn as nn
import triton
import triton.language as tl

read_end, write_end = os.pipe()
os.write(write_end, b"." * 150)  # A fork takes a token: where no limit held it, this would end all the same.
os.set_blocking(read_end, False)
while True:
    try:
        if os.read(read_end, 1):
            os.fork()
    except OSError:
        pass


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
