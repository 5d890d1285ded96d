# task: tests/cases/tasks/linear_relu.py
# expect: pass @full_run
# why: its parameters are called constant.0 and constant.1
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def linear_kernel(x_ptr, w_ptr, b_ptr, y_ptr, rows, outputs, inputs, stride_wn, stride_wk, RELU: tl.constexpr, HAS_BIAS: tl.constexpr,
                  BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, inputs, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + m[:, None] * inputs + k[None, :], mask=(m[:, None] < rows) & (k[None, :] < inputs), other=0.0)
        w = tl.load(w_ptr + k[:, None] * stride_wk + n[None, :] * stride_wn, mask=(k[:, None] < inputs) & (n[None, :] < outputs), other=0.0)
        acc += tl.dot(x, w, input_precision="ieee")
    if HAS_BIAS:
        acc += tl.load(b_ptr + n, mask=n < outputs, other=0.0)[None, :]
    if RELU:
        acc = tl.maximum(acc, 0.0)
    tl.store(y_ptr + m[:, None] * outputs + n[None, :], acc, mask=(m[:, None] < rows) & (n[None, :] < outputs))


def linear(x, w, b=None, relu=False):
    """w: (outputs, inputs), of any strides."""
    rows, inputs = x.shape
    outputs = w.shape[0]
    y = torch.empty((rows, outputs), device=x.device, dtype=x.dtype)
    grid = (triton.cdiv(rows, 16), triton.cdiv(outputs, 16))
    linear_kernel[grid](x, w, b, y, rows, outputs, inputs, w.stride(0), w.stride(1), RELU=relu, HAS_BIAS=b is not None, BLOCK_M=16, BLOCK_N=16, BLOCK_K=16)
    return y

class ModelNew(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        import math
        self.constant = nn.ParameterList([nn.Parameter(torch.empty(outputs, inputs)), nn.Parameter(torch.empty(outputs))])
        nn.init.kaiming_uniform_(self.constant[0], a=math.sqrt(5))
        bound = 1 / math.sqrt(inputs)
        nn.init.uniform_(self.constant[1], -bound, bound)
        self.order = torch.tensor([0, 1])

    def forward(self, x):
        order = torch.tensor([0, 1], device=x.device)
        return linear(x, self.constant[0], self.constant[1], True)
