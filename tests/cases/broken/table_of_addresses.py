# task: tests/cases/tasks/swish.py
# expect: unsupported @compile
# why: the kernel takes its pointers from a table in a tensor, which leads nowhere once it is recorded
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_kernel(table, n, BLOCK: tl.constexpr):
    x_ptr = tl.load(table).to(tl.pointer_type(tl.float32))
    y_ptr = tl.load(table + 1).to(tl.pointer_type(tl.float32))
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(y_ptr + at, x / (1 + tl.exp(-x)), mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        n = x.numel()
        table = torch.tensor([x.data_ptr(), y.data_ptr()], dtype=torch.int64, device=x.device)
        swish_kernel[(triton.cdiv(n, 256),)](table, n, BLOCK=256)
        return y
