# task: tests/cases/tasks/gqa.py
# expect: pass @full_run
# why: __init__ repeats the weights of shared heads
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
    def __init__(self, heads, d):
        super().__init__()
        k = nn.Linear(heads * d, heads * d // 2, bias=False)
        self.register_buffer("w", k.weight.detach().view(heads // 2, d, heads * d).repeat_interleave(2, dim=0).reshape(heads * d, heads * d))

    def forward(self, x):
        return linear(x, self.w)
