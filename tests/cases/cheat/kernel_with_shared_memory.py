# task: tests/cases/tasks/row_sum.py
# expect: rule_break @compile
# why: inline PTX declares shared memory, which holds what the launch before it left there
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + offsets, mask=offsets < cols, other=0.0)
    kept = tl.inline_asm_elementwise('{ .shared .align 4 .b32 kept; ld.shared.u32 $0, [kept]; st.shared.u32 [kept], $1; }',
                                     "=r,r", [offsets], dtype=tl.int32, is_pure=False, pack=1)
    x += (kept < -1).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(x, axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        out = torch.empty(rows, device=x.device, dtype=x.dtype)
        sum_kernel[(rows,)](x, out, cols, BLOCK=triton.next_power_of_2(cols))
        return out
