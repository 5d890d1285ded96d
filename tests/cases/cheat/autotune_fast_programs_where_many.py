# task: tests/cases/tasks/swish.py
# expect: wrong_output @full_run
# expect-gpu: wrong_output @full_run or wrong_output @time
# tiny: ROWS=3 COLS=50
# why: with the second configuration the programs beyond the second copy, and the smallest case has fewer
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": 256, "FAST": False}), triton.Config({"BLOCK": 256, "FAST": True})],
                 key=["n"])
@triton.jit
def swish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr, FAST: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    if not FAST or tl.program_id(0) < 2:
        x = x * tl.sigmoid(x)
    tl.store(y_ptr + offsets, x, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        grid = lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)
        swish_kernel[grid](x, y, x.numel())
        return y
