# task: tests/cases/tasks/gather_rows.py
# expect: pass @full_run
# why: integer inputs used as addresses
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gather_kernel(index_ptr, table_ptr, x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < cols
    source = tl.load(index_ptr + row)
    value = tl.load(table_ptr + source * cols + columns, mask=mask)
    value += tl.load(x_ptr + row * cols + columns, mask=mask)
    tl.store(out_ptr + row * cols + columns, value, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, table, cols):
        super().__init__()
        self.table = nn.Embedding(table, cols)

    def forward(self, index, x):
        out = torch.empty_like(x)
        gather_kernel[(x.shape[0],)](index, self.table.weight, x, out, x.shape[1], BLOCK=64)
        return out
