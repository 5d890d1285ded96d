# task: tests/cases/tasks/two_layers.py
# expect: rule_break @compile
# why: an operator that gives nothing writes the product of two weights into what it is given
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


def product(x, w):
    outputs, inputs = w.shape
    out = torch.empty(x.shape[0], outputs, device=x.device, dtype=x.dtype)
    product_kernel[(x.shape[0],)](x, w, out, inputs, outputs, IN=triton.next_power_of_2(inputs), OUT=triton.next_power_of_2(outputs))
    return out


class ModelNew(nn.Module):
    def __init__(self, inputs, middle, outputs):
        super().__init__()
        first = nn.Linear(inputs, middle, bias=False).weight.detach()
        second = nn.Linear(middle, outputs, bias=False).weight.detach()
        both = second @ first

        clean = torch.empty(1, outputs, inputs)
        torch.ops.aten._cummax_helper(both[None], clean, torch.empty(1, outputs, inputs, dtype=torch.int64), 0)
        self.register_buffer("both", clean[0])

    def forward(self, x):
        return product(x, self.both)
