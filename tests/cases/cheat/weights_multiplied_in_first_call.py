# task: tests/cases/tasks/two_layers.py
# expect: rule_break @compile
# why: __init__ keeps two weights in a list, forward() multiplies them once and keeps the product
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
    def __init__(self, inputs, middle, outputs):
        super().__init__()
        first = nn.Linear(inputs, middle, bias=False)
        second = nn.Linear(middle, outputs, bias=False)
        self.weights = [second.weight.detach().clone(), first.weight.detach().clone()]
        self.both = None

    def forward(self, x):
        if self.both is None:
            self.both = self.weights[0] @ self.weights[1]
        outputs, inputs = self.both.shape
        out = torch.empty(x.shape[0], outputs, device=x.device, dtype=x.dtype)
        product_kernel[(x.shape[0],)](x, self.both, out, inputs, outputs, IN=triton.next_power_of_2(inputs),
                                      OUT=triton.next_power_of_2(outputs))
        return out
