# task: tests/cases/tasks/cumsum.py
# expect: pass @full_run
# why: decoupled look-back: a program adds up what the ones before it have published, and waits where one has not yet
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def cumsum_kernel(x_ptr, y_ptr, sums_ptr, flags_ptr, cols, BLOCK: tl.constexpr):
    row, chunk, chunks = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    columns = chunk * BLOCK + tl.arange(0, BLOCK)
    mask = columns < cols
    x = tl.load(x_ptr + row * cols + columns, mask=mask, other=0.0)
    own = tl.sum(x, axis=0)
    place = row * chunks + chunk
    tl.store(sums_ptr + 2 * place, own)
    tl.atomic_xchg(flags_ptr + place, 1, sem="release")
    before, at = 0.0, place - 1
    while at >= row * chunks:
        flag = tl.atomic_add(flags_ptr + at, 0, sem="acquire")
        while flag == 0:
            flag = tl.atomic_add(flags_ptr + at, 0, sem="acquire")
        before += tl.load(sums_ptr + 2 * at + flag - 1)
        at = tl.where(flag == 2, -1, at - 1)
    tl.store(sums_ptr + 2 * place + 1, before + own)
    tl.atomic_xchg(flags_ptr + place, 2, sem="release")
    tl.store(y_ptr + row * cols + columns, before + tl.cumsum(x, axis=0), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        chunks = triton.cdiv(cols, 8)
        y = torch.empty_like(x)
        sums = torch.empty((rows, chunks, 2), device=x.device)
        flags = torch.zeros((rows, chunks), device=x.device, dtype=torch.int32)
        cumsum_kernel[(rows, chunks)](x, y, sums, flags, cols, BLOCK=8)
        return y
