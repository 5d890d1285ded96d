# task: tests/cases/tasks/two_norms.py
# expect: pass @full_run
# why: __init__ assigns the weights of two norms to the rows of a table
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norm_kernel(x_ptr, g_ptr, b_ptr, y_ptr, cols, eps, BLOCK: tl.constexpr):
    row, c = tl.program_id(0), tl.arange(0, BLOCK)
    m = c < cols
    x = tl.load(x_ptr + row * cols + c, mask=m, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / cols
    d = tl.where(m, x - mean, 0.0)
    y = d / tl.sqrt(tl.sum(d * d, axis=0) / cols + eps)
    tl.store(y_ptr + row * cols + c, y * tl.load(g_ptr + c, mask=m, other=0.0) + tl.load(b_ptr + c, mask=m, other=0.0), mask=m)


def norm(x, g, b):
    y = torch.empty_like(x)
    norm_kernel[(x.shape[0],)](x, g, b, y, x.shape[1], 1e-5, BLOCK=triton.next_power_of_2(x.shape[1]))
    return y


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()

        self.a, self.b = nn.LayerNorm(cols), nn.LayerNorm(cols)
        table = torch.empty(4, cols)
        with torch.no_grad():
            for i, p in enumerate(self.parameters()):
                table[i] = p
        self.register_buffer("table", table)

    def forward(self, x):
        p = self.table
        return norm(norm(x, p[0], p[1]), p[2], p[3])
