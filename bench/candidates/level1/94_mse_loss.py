# SPDX-License-Identifier: Apache-2.0
# KernelBench level 1, task 94: MSELoss.
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def squared_error_kernel(a_ptr, b_ptr, partial_ptr, n, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * STEPS * BLOCK
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for step in range(STEPS):
        offsets = start + step * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        difference = tl.load(a_ptr + offsets, mask=mask, other=0.0) - tl.load(b_ptr + offsets, mask=mask, other=0.0)
        acc += difference * difference
    tl.store(partial_ptr + tl.program_id(0), tl.sum(acc, axis=0))


@triton.jit
def mean_of_partials_kernel(partial_ptr, out_ptr, count, n, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, count, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        acc += tl.load(partial_ptr + offsets, mask=offsets < count, other=0.0)
    tl.store(out_ptr, tl.sum(acc, axis=0) / n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, predictions, targets):
        predictions = predictions.contiguous()
        targets = targets.contiguous()
        n = predictions.numel()
        count = triton.cdiv(n, 32 * 2048)
        partial = torch.empty((count,), device=predictions.device, dtype=torch.float32)
        out = torch.empty((), device=predictions.device, dtype=predictions.dtype)
        squared_error_kernel[(count,)](predictions, targets, partial, n, STEPS=32, BLOCK=2048)
        mean_of_partials_kernel[(1,)](partial, out, count, n, BLOCK=1024)
        return out
