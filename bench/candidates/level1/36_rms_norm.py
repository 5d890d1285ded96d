# SPDX-License-Identifier: Apache-2.0
# KernelBench level 1, task 36: RMSNorm.
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rms_norm_kernel(x_ptr, y_ptr, features, inner, eps, FEATURES: tl.constexpr, BLOCK: tl.constexpr):
    batch = tl.program_id(1).to(tl.int64)
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    feature = tl.arange(0, FEATURES)
    mask = (feature[:, None] < features) & (place[None, :] < inner)
    offsets = batch * features * inner + feature[:, None].to(tl.int64) * inner + place[None, :]
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    rms = tl.sqrt(tl.sum(x * x, axis=0) / features + eps)
    tl.store(y_ptr + offsets, x / rms[None, :], mask=mask)


class ModelNew(nn.Module):
    def __init__(self, num_features: int, eps: float = 1e-5):
        super().__init__()
        self.num_features = num_features
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        batch, features = x.shape[0], x.shape[1]
        inner = x[0, 0].numel()
        y = torch.empty_like(x)
        grid = (triton.cdiv(inner, 64), batch)
        rms_norm_kernel[grid](x, y, features, inner, self.eps,
                              FEATURES=triton.next_power_of_2(features), BLOCK=64)
        return y
