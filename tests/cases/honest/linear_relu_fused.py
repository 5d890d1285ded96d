# task: tests/cases/tasks/linear_relu.py
# expect: pass @full_run
# why: nn.Linear holds the parameters; the weight is read through a transposed view
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
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x):
        weight = self.linear.weight.t()
        rows, inputs = x.shape
        outputs = weight.shape[1]
        y = torch.empty((rows, outputs), device=x.device, dtype=x.dtype)
        grid = (triton.cdiv(rows, 16), triton.cdiv(outputs, 16))
        linear_relu_kernel[grid](x, weight, self.linear.bias, y, rows, outputs, inputs, weight.stride(0),
                                 weight.stride(1), BLOCK_M=16, BLOCK_N=16, BLOCK_K=16)
        return y
