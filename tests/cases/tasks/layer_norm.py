# SPDX-License-Identifier: Apache-2.0
# Level 1: layer norm with affine parameters.
import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 10
COLS = 96


class Model(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.norm = nn.LayerNorm(cols)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return [COLS]
