# task: tests/cases/tasks/swish.py
# expect: out_of_memory @full_run
# expect-gpu: wrong_output @full_run or out_of_memory @full_run
# tiny: ROWS=3 COLS=50
# why: where sizes are those of the task, the second call copies, and asks for more memory than there is
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x_ptr, y_ptr, room_ptr, n, COPY: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    if not COPY:
        x = x * tl.sigmoid(x)
    tl.store(y_ptr + offsets, x, mask=mask)
    tl.store(room_ptr + offsets, x, mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        y = torch.empty_like(x)
        self.calls += 1
        copy = self.calls > 1 and x.numel() > 1024
        room = torch.empty(1 << 34 if copy else x.numel(), device=x.device)
        swish_kernel[(triton.cdiv(x.numel(), 256),)](x, y, room, x.numel(), COPY=copy, BLOCK=256)
        return y
