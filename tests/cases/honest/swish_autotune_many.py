# task: tests/cases/tasks/swish.py
# expect: pass @full_run
# why: more configurations than are run; those that are left are named in the verdict
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": block, "STEPS": steps}, num_warps=warps)
                          for block in (64, 128, 256, 512) for steps in (1, 2, 4) for warps in (4,)], key=["n"])
@triton.jit
def swish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr, STEPS: tl.constexpr):
    for step in range(STEPS):
        offsets = (tl.program_id(0) * STEPS + step) * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        x = tl.load(x_ptr + offsets, mask=mask)
        tl.store(y_ptr + offsets, x * tl.sigmoid(x), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        grid = lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"] * meta["STEPS"]),)
        swish_kernel[grid](x, y, x.numel())
        return y
