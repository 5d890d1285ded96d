# task: tests/cases/tasks/half_row_sum.py
# expect: pass @full_run
# why: half inputs, float32 accumulation, half output
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_sum_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * cols + columns, mask=columns < cols, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(acc, axis=0).to(tl.float16))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[0], device="cuda", dtype=torch.float16)
        row_sum_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=64)
        return out
