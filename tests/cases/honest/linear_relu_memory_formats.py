# task: tests/cases/tasks/linear_relu.py
# expect: pass @full_run
# why: layouts and memory formats are named as PyTorch's own code names them
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def linear_relu_kernel(x_ptr, w_ptr, b_ptr, y_ptr, outputs, inputs, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.program_id(1)
    k = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * inputs + k, mask=k < inputs, other=0.0)
    w = tl.load(w_ptr + column * inputs + k, mask=k < inputs, other=0.0)
    y = tl.sum(x * w, axis=0) + tl.load(b_ptr + column)
    tl.store(y_ptr + row * outputs + column, tl.where(y > 0, y, 0.0))


class ModelNew(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x):
        rows, inputs = x.shape
        outputs = self.linear.weight.shape[0]
        x = x.clone(memory_format=torch.preserve_format).contiguous(memory_format=torch.contiguous_format)
        weight = self.linear.weight.to(memory_format=torch.preserve_format, dtype=x.dtype, copy=True)
        y = torch.empty((rows, outputs), device=x.device, dtype=x.dtype, layout=torch.strided)
        y = torch.empty_like(y, memory_format=torch.contiguous_format)
        linear_relu_kernel[(rows, outputs)](x, weight, self.linear.bias, y, outputs, inputs,
                                            BLOCK=triton.next_power_of_2(inputs))
        return y
