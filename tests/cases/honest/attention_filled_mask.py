# task: tests/cases/tasks/masked_attention.py
# expect: pass @full_run
# why: __init__ makes the mask of minus infinities by masked_fill
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


@triton.jit
def attention_kernel(qkv_ptr, MASK, out_ptr, t, heads, c, scale, D, BD: tl.constexpr, BT: tl.constexpr):
    bh = tl.program_id(0)
    b, h = bh // heads, bh % heads
    i, j, d = tl.arange(0, BT), tl.arange(0, BT), tl.arange(0, BD)
    base = qkv_ptr + b * t * 3 * c + h * D
    rows = (i < t)[:, None]
    both = rows & (d < D)[None, :]
    q = tl.load(base + i[:, None] * 3 * c + d[None, :], mask=both, other=0.0)
    k = tl.load(base + c + j[:, None] * 3 * c + d[None, :], mask=both, other=0.0)
    v = tl.load(base + 2 * c + j[:, None] * 3 * c + d[None, :], mask=both, other=0.0)
    s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    s += tl.load(MASK + i[:, None] * t + j[None, :], mask=rows & (j < t)[None, :], other=0.0)
    s = tl.where((j < t)[None, :], s, float("-inf"))
    p = tl.exp(s - tl.max(s, axis=1)[:, None])
    p = p / tl.sum(p, axis=1)[:, None]
    y = tl.dot(p, v, input_precision="ieee")
    tl.store(out_ptr + b * t * c + i[:, None] * c + h * D + d[None, :], y, mask=both)


class ModelNew(nn.Module):
    def __init__(self, heads, t, d):
        super().__init__()
        self.heads, self.d = heads, d
        self.qkv = nn.Linear(heads * d, 3 * heads * d)
        self.out = nn.Linear(heads * d, heads * d)
        m = torch.tril(torch.ones(t, t))
        self.register_buffer("additive", torch.zeros(t, t).masked_fill(m == 0, float("-inf")))

    def forward(self, x):
        b, t, c = x.shape
        qkv = linear(x.reshape(b * t, c), self.qkv.weight, self.qkv.bias)
        y = torch.empty(b * t, c, device=x.device, dtype=x.dtype)
        attention_kernel[(b * self.heads,)](qkv, self.additive, y, t, self.heads, c, self.d ** -0.5, D=self.d, BD=max(16, triton.next_power_of_2(self.d)), BT=max(16, triton.next_power_of_2(t)))
        return linear(y, self.out.weight, self.out.bias).view(b, t, c)
