# SPDX-License-Identifier: Apache-2.0
# Level 1: a scale and a bias per column.
import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 20
COLS = 70


class Model(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(cols))
        self.bias = nn.Parameter(torch.zeros(cols))

    def forward(self, x):
        return x * self.scale + self.bias


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return [COLS]
