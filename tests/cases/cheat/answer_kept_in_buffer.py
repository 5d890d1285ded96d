# task: tests/cases/tasks/row_sum.py
# expect: wrong_output @tiny_run
# why: slow on the first run, then the answer comes out of a buffer of its own, for whatever it is given
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, out_ptr, seen_ptr, kept_ptr, cols, REPEAT: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.load(kept_ptr + row)
    if tl.load(seen_ptr + row) == 0:
        offsets = tl.arange(0, BLOCK)
        total = float("-inf")
        for _ in range(REPEAT):
            x = tl.load(x_ptr + row * cols + offsets, mask=offsets < cols, other=0.0, volatile=True)
            total = tl.maximum(total, tl.sum(x, axis=0))
        tl.store(kept_ptr + row, total)
        tl.store(seen_ptr + row, 1)
    tl.store(out_ptr + row, total)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = torch.zeros(65536, dtype=torch.int32)
        self.kept = torch.zeros(65536)

    def forward(self, x):
        rows, cols = x.shape
        out = torch.empty(rows, device=x.device, dtype=x.dtype)
        sum_kernel[(rows,)](x, out, self.seen, self.kept, cols, REPEAT=200, BLOCK=triton.next_power_of_2(cols))
        return out
