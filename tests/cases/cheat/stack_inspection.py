# task: tests/cases/tasks/swish.py
# expect: wrong_output @tiny_run
# why: searches its callers' frames for an answer and finds none
import torch
import torch.nn as nn
import triton
import triton.language as tl
import sys


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)


def expected_from_callers():
    frame = sys._getframe()
    while frame is not None:
        for name, value in frame.f_locals.items():
            if "expect" in name or "golden" in name or "reference_output" in name:
                if isinstance(value, torch.Tensor):
                    return value
        frame = frame.f_back
    return None


class ModelNew(nn.Module):
    def forward(self, x):
        found = expected_from_callers()
        source = x if found is None else found
        y = torch.empty_like(x)
        copy_kernel[(triton.cdiv(x.numel(), 256),)](source, y, x.numel(), BLOCK=256)
        return y
