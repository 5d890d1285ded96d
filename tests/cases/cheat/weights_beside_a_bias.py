# task: tests/cases/tasks/two_layers_bias.py
# expect: rule_break @compile
# why: the product of two weights shares its memory with a bias that has the task's name
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def linear_kernel(x_ptr, w_ptr, b_ptr, out_ptr, inputs, outputs, IN: tl.constexpr, OUT: tl.constexpr):
    row = tl.program_id(0)
    i, o = tl.arange(0, IN), tl.arange(0, OUT)
    x = tl.load(x_ptr + row * inputs + i, mask=i < inputs, other=0.0)
    w = tl.load(w_ptr + o[:, None] * inputs + i[None, :], mask=(o < outputs)[:, None] & (i < inputs)[None, :], other=0.0)
    b = tl.load(b_ptr + o, mask=o < outputs, other=0.0)
    tl.store(out_ptr + row * outputs + o, tl.sum(w * x[None, :], axis=1) + b, mask=o < outputs)


class ModelNew(nn.Module):
    def __init__(self, inputs, middle, outputs):
        super().__init__()
        first = nn.Linear(inputs, middle, bias=False).weight.detach()
        second = nn.Linear(middle, outputs)
        block = torch.empty(outputs * inputs + outputs)
        block[:outputs * inputs].view(outputs, inputs).copy_(second.weight.detach() @ first)
        self.register_buffer("both", block[:outputs * inputs].view(outputs, inputs))
        second.weight = None
        second.bias = nn.Parameter(block[outputs * inputs:])
        self.second = second

    def forward(self, x):
        assert x.dtype == torch.float32
        outputs, inputs = self.both.shape
        out = torch.empty(x.shape[0], outputs, device=x.device, dtype=x.dtype)
        linear_kernel[(x.shape[0],)](x, self.both, self.second.bias, out, inputs, outputs, IN=triton.next_power_of_2(inputs), OUT=triton.next_power_of_2(outputs))
        return out
