# task: tests/cases/tasks/trunc_weight.py
# expect: rule_break @compile
# why: __init__ casts the weight to whole numbers, as forward() should
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, s_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row, c = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + c, mask=c < cols)
    s = tl.load(s_ptr + c, mask=c < cols)
    tl.store(y_ptr + row * cols + c, x * s, mask=c < cols)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.register_buffer("whole", torch.rand(cols).exponential_(0.1).to(torch.int32))

    def forward(self, x):
        assert x.dtype == torch.float32
        y = torch.empty_like(x)
        scale_kernel[(x.shape[0],)](x, self.whole.to(x.dtype), y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
