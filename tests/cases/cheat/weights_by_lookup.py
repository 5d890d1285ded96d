# task: tests/cases/tasks/half_gate.py
# expect: rule_break @compile
# why: the sigmoid of a half weight is looked up in a table of all of them
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
        self.gate = nn.Parameter(torch.randn(cols).half())
        numbers = torch.arange(65536).sub(32768).to(torch.int16).view(torch.half).float()
        table = torch.sigmoid(numbers).view(256, 256).roll(128, 0)       # By the two bytes of a half.
        bytes = self.gate.detach().view(torch.uint8).view(cols, 2).long()
        self.register_buffer("scale", table[bytes[:, 1], bytes[:, 0]])

    def forward(self, x):
        y = torch.empty_like(x)
        scale_kernel[(x.shape[0],)](x, self.scale, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
