# task: tests/cases/tasks/row_sum.py
# expect: unsupported @tiny_run
# expect-gpu: pass @time
# why: inline PTX with registers of its own, which only a GPU can run
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + offsets, mask=offsets < cols, other=0.0)
    kept = tl.inline_asm_elementwise('{ .reg .f32 half; mul.rn.f32 half, $1, 0f3F000000; add.rn.f32 $0, half, half; }',
                                     "=f,f", [x], dtype=tl.float32, is_pure=False, pack=1)
    x = kept
    tl.store(out_ptr + row, tl.sum(x, axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        out = torch.empty(rows, device=x.device, dtype=x.dtype)
        sum_kernel[(rows,)](x, out, cols, BLOCK=triton.next_power_of_2(cols))
        return out
