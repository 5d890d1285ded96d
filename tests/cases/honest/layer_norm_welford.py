# task: tests/cases/tasks/layer_norm.py
# expect: pass @full_run
# why: tl.reduce with a helper that returns a tuple
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def combine(mean_a, m2_a, count_a, mean_b, m2_b, count_b):
    count = count_a + count_b
    delta = mean_b - mean_a
    share = tl.where(count == 0.0, 0.0, count_b / count)
    return mean_a + delta * share, m2_a + m2_b + delta * delta * count_a * share, count


@triton.jit
def layer_norm_kernel(x_ptr, w_ptr, b_ptr, y_ptr, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < cols
    x = tl.load(x_ptr + row * cols + columns, mask=mask, other=0.0)
    ones = tl.where(mask, 1.0, 0.0)
    mean, m2, count = tl.reduce((x, tl.zeros_like(x), ones), 0, combine)
    y = (x - mean) * tl.rsqrt(m2 / count + eps)
    y = y * tl.load(w_ptr + columns, mask=mask) + tl.load(b_ptr + columns, mask=mask)
    tl.store(y_ptr + row * cols + columns, y, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.norm = nn.LayerNorm(cols)

    def forward(self, x):
        y = torch.empty_like(x)
        layer_norm_kernel[(x.shape[0],)](x, self.norm.weight, self.norm.bias, y, x.shape[1], self.norm.eps,
                                         BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
