# task: tests/cases/tasks/two_square_layers.py
# expect: rule_break @compile
# why: what has the name and shape of a weight is a product of two, in another precision
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def product_kernel(x_ptr, w_ptr, out_ptr, inputs, outputs, IN: tl.constexpr, OUT: tl.constexpr):
    row = tl.program_id(0)
    i, o = tl.arange(0, IN), tl.arange(0, OUT)
    x = tl.load(x_ptr + row * inputs + i, mask=i < inputs, other=0.0)
    w = tl.load(w_ptr + o[:, None] * inputs + i[None, :], mask=(o < outputs)[:, None] & (i < inputs)[None, :], other=0.0)
    tl.store(out_ptr + row * outputs + o, tl.sum(w * x[None, :], axis=1), mask=o < outputs)


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        first = nn.Linear(size, size, bias=False)
        second = nn.Linear(size, size, bias=False)
        self.first = nn.Linear(size, size, bias=False)
        self.first.weight = nn.Parameter((second.weight @ first.weight).detach().double())

    def forward(self, x):
        both = self.first.weight.to(torch.float32)
        outputs, inputs = both.shape
        out = torch.empty(x.shape[0], outputs, device=x.device, dtype=x.dtype)
        product_kernel[(x.shape[0],)](x, both, out, inputs, outputs, IN=triton.next_power_of_2(inputs),
                                      OUT=triton.next_power_of_2(outputs))
        return out
