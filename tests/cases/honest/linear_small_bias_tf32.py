# task: tests/cases/tasks/linear_small_bias.py
# expect: pass @full_run
# expect-fp32: wrong_output @tiny_run
# expect-small-inputs: pass @full_run
# why: tl.dot as every tutorial writes it, which is TF32 for float32
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def linear_kernel(x_ptr, w_ptr, b_ptr, y_ptr, rows, inputs, outputs,
                  BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, inputs, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + m[:, None] * inputs + k[None, :], mask=(m[:, None] < rows) & (k[None, :] < inputs), other=0.0)
        w = tl.load(w_ptr + k[:, None] * outputs + n[None, :], mask=(k[:, None] < inputs) & (n[None, :] < outputs), other=0.0)
        acc += tl.dot(x, w)
    acc += tl.load(b_ptr + n, mask=n < outputs, other=0.0)[None, :]
    tl.store(y_ptr + m[:, None] * outputs + n[None, :], acc, mask=(m[:, None] < rows) & (n[None, :] < outputs))


class ModelNew(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs) * 0.5)
        self.bias = nn.Parameter(torch.randn(outputs) * 3.0e-4)

    def forward(self, x):
        (rows, inputs), outputs = x.shape, self.weight.shape[1]
        y = torch.empty((rows, outputs), device=x.device)
        linear_kernel[(triton.cdiv(rows, 16), triton.cdiv(outputs, 16))](x, self.weight, self.bias, y, rows, inputs, outputs,
            BLOCK_M=16, BLOCK_N=16, BLOCK_K=16)
        return y
