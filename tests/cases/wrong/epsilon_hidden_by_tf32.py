# task: tests/cases/tasks/linear_rms_norm.py
# expect: pass @full_run
# expect-fp32: wrong_output @tiny_run
# expect-small-inputs: wrong_output @full_run
# why: leaves out an epsilon that the tolerance of TF32 hides, unless the rows are small
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norm_kernel(x_ptr, w_ptr, y_ptr, rows, inputs, outputs,
                BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, inputs, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + m[:, None] * inputs + k[None, :], mask=(m[:, None] < rows) & (k[None, :] < inputs), other=0.0)
        w = tl.load(w_ptr + k[:, None] * outputs + n[None, :], mask=(k[:, None] < inputs) & (n[None, :] < outputs), other=0.0)
        acc += tl.dot(x, w)
    acc = acc / tl.sqrt(tl.sum(acc * acc, axis=1) / outputs + 1.0e-12)[:, None]
    tl.store(y_ptr + m[:, None] * outputs + n[None, :], acc, mask=(m[:, None] < rows) & (n[None, :] < outputs))


class ModelNew(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs) * 0.5)

    def forward(self, x):
        (rows, inputs), outputs = x.shape, self.weight.shape[1]
        y = torch.empty((rows, outputs), device=x.device)
        norm_kernel[(triton.cdiv(rows, 16),)](x, self.weight, y, rows, inputs, outputs,
            BLOCK_M=16, BLOCK_N=triton.next_power_of_2(outputs), BLOCK_K=16)
        return y
