# task: tests/cases/tasks/two_layers.py
# expect: pass @full_run
# why: __init__ puts the rows between the layers into another order, and transposes them
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def product_kernel(x_ptr, w_ptr, out_ptr, inputs, outputs, IN: tl.constexpr, OUT: tl.constexpr):
    row = tl.program_id(0)
    i, o = tl.arange(0, IN), tl.arange(0, OUT)
    x = tl.load(x_ptr + row * inputs + i, mask=i < inputs, other=0.0)
    w = tl.load(w_ptr + i[:, None] * outputs + o[None, :], mask=(i < inputs)[:, None] & (o < outputs)[None, :], other=0.0)
    tl.store(out_ptr + row * outputs + o, tl.sum(w * x[:, None], axis=0), mask=o < outputs)


class ModelNew(nn.Module):
    def __init__(self, inputs, middle, outputs):
        super().__init__()
        first = nn.Linear(inputs, middle, bias=False)
        second = nn.Linear(middle, outputs, bias=False)
        self.sizes = inputs, middle, outputs
        order = torch.cat([torch.arange(1, middle, 2), torch.arange(0, middle, 2)])
        packed = torch.cat([first.weight[order].t().reshape(-1), second.weight.t()[order].reshape(-1)])
        self.packed = nn.Parameter(packed.detach().clone())

    def forward(self, x):
        inputs, middle, outputs = self.sizes
        between = torch.empty(x.shape[0], middle, device=x.device, dtype=x.dtype)
        out = torch.empty(x.shape[0], outputs, device=x.device, dtype=x.dtype)
        first, second = self.packed[:inputs * middle], self.packed[inputs * middle:]
        for a, w, b, n, m in ((x, first, between, inputs, middle), (between, second, out, middle, outputs)):
            product_kernel[(x.shape[0],)](a, w, b, n, m, IN=triton.next_power_of_2(n), OUT=triton.next_power_of_2(m))
        return out
