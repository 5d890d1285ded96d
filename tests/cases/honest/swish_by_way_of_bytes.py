# task: tests/cases/tasks/swish.py
# expect: pass @full_run
# why: casts that are within the range, and exact: int8, uint8, float8
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    count = (offsets % 16).to(tl.float32)
    near = tl.minimum(tl.maximum(x, -127.5), 127.5).to(tl.int8).to(tl.float32)
    zero = (count - 8.0).to(tl.int8).to(tl.float32) - count + 8.0
    zero += (count * 12.0).to(tl.uint8).to(tl.float32) - count * 12.0
    few = (offsets % 8).to(tl.float32)
    zero += (few * 16.0).to(tl.float8e5).to(tl.float32) - few * 16.0
    zero += (few * 0.125).to(tl.float16).to(tl.float8e5).to(tl.float16).to(tl.float32) - few * 0.125
    zero += (-count.to(tl.int32) // 4 * 1024).to(tl.float32).to(tl.float8e5).to(tl.float32) - (-count.to(tl.int32) // 4 * 1024)
    y = x * tl.sigmoid(x) + zero + (near - near)
    tl.store(y_ptr + offsets, y, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        swish_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
