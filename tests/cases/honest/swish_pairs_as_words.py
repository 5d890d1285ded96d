# task: tests/cases/tasks/swish.py
# expect: pass @full_run
# why: loads pairs of floats as words, at addresses that are multiples of a word
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    start = tl.program_id(0) * cols
    words = (x_ptr + start).to(tl.pointer_type(tl.int64))
    mask = columns < (cols - 0) // 2
    word = tl.load(words + columns, mask=mask)
    low = (word & 0xFFFFFFFF).to(tl.int32).to(tl.float32, bitcast=True)
    high = (word >> 32).to(tl.int32).to(tl.float32, bitcast=True)
    tl.store(y_ptr + start + 2 * columns, low * tl.sigmoid(low), mask=mask)
    tl.store(y_ptr + start + 2 * columns + 1, high * tl.sigmoid(high), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        swish_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
