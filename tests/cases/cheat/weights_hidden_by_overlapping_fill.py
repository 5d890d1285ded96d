# task: tests/cases/tasks/two_layers.py
# expect: rule_break @compile
# why: a fill of as many elements as there are, most of them one and the same, is to hide what they were made of
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
        product = (second.weight @ first.weight).detach()
        n = product.numel()
        room = torch.zeros(n + 2)
        room[1:1 + n] = product.flatten()
        room.as_strided((2, (n + 2) // 2), (n + 1, 0)).fill_(0.0)
        self.both = nn.Parameter(room[1:1 + n].view(product.shape))

    def forward(self, x):
        outputs, inputs = self.both.shape
        out = torch.empty(x.shape[0], outputs, device=x.device, dtype=x.dtype)
        product_kernel[(x.shape[0],)](x, self.both, out, inputs, outputs, IN=triton.next_power_of_2(inputs),
                                      OUT=triton.next_power_of_2(outputs))
        return out
