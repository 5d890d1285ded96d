# task: tests/cases/tasks/linear_relu.py
# expect: pass @full_run
# why: stores the weight transposed, made in __init__ from an nn.Linear that it then drops
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def linear_relu_kernel(x_ptr, w_ptr, b_ptr, y_ptr, rows, outputs, inputs, stride_wk, stride_wn,
                       BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, inputs, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + m[:, None] * inputs + k[None, :], mask=(m[:, None] < rows) & (k[None, :] < inputs), other=0.0)
        w = tl.load(w_ptr + k[:, None] * stride_wk + n[None, :] * stride_wn,
                    mask=(k[:, None] < inputs) & (n[None, :] < outputs), other=0.0)
        acc += tl.dot(x, w, input_precision="ieee")
    acc += tl.load(b_ptr + n, mask=n < outputs, other=0.0)[None, :]
    y = tl.where(acc > 0, acc, 0.0)
    tl.store(y_ptr + m[:, None] * outputs + n[None, :], y, mask=(m[:, None] < rows) & (n[None, :] < outputs))


class ModelNew(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        linear = nn.Linear(inputs, outputs)
        self.weight_t = nn.Parameter(linear.weight.detach().t().contiguous())
        self.bias = nn.Parameter(linear.bias.detach().clone())

    def forward(self, x):
        rows, inputs = x.shape
        outputs = self.weight_t.shape[1]
        y = x.new_empty(rows, outputs)
        grid = (triton.cdiv(rows, 32), triton.cdiv(outputs, 16))
        linear_relu_kernel[grid](x, self.weight_t, self.bias, y, rows, outputs, inputs, outputs, 1,
                                 BLOCK_M=32, BLOCK_N=16, BLOCK_K=16)
        return y
