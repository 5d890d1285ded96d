# task: tests/cases/tasks/layer_norm.py
# expect: pass @full_run
# why: puts the weights of an nn.LayerNorm that it does not keep into one tensor
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def layer_norm_kernel(x_ptr, w_ptr, b_ptr, y_ptr, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < cols
    x = tl.load(x_ptr + row * cols + columns, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / cols
    centred = tl.where(mask, x - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / cols
    w = tl.load(w_ptr + columns, mask=mask)
    b = tl.load(b_ptr + columns, mask=mask)
    tl.store(y_ptr + row * cols + columns, centred / tl.sqrt(variance + eps) * w + b, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        norm = nn.LayerNorm(cols)
        self.both = nn.Parameter(torch.stack([norm.weight, norm.bias]).detach())

    def forward(self, x):
        y = torch.empty_like(x)
        weight, bias = self.both
        layer_norm_kernel[(x.shape[0],)](x, weight, bias, y, x.shape[1], 1e-5, BLOCK=128)
        return y
