# SPDX-License-Identifier: Apache-2.0
# Level 2: RMS norm with a learned scale.
import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 14
COLS = 80


class Model(nn.Module):
    def __init__(self, cols, eps):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(cols))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + self.eps) * self.weight


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return [COLS, 1e-3]
