# task: tests/cases/tasks/swish.py
# expect: rule_break @compile
# why: the library computes the answer, and leaves it in memory that the kernel is not given
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(y_ptr + at, x / (1 + tl.exp(-x)), mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        torch.nn.functional.silu(x)  # What a kernel that reads beyond x might find.
        y = torch.empty_like(x)
        n = int(torch.prod(torch.tensor(x.shape)))
        n = torch.tensor(x.shape).prod().item()
        n = torch.prod(torch.tensor(list(x.size()), device=x.device)).item()
        swish_kernel[(int(torch.ceil(torch.tensor(n / 256)).item()),)](x, y, n, BLOCK=256)
        return y
