# SPDX-License-Identifier: Apache-2.0
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


ROWS = 16
COLS = 250

class Model(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.w = nn.Parameter(torch.rand(cols).exponential_(0.1))

    def forward(self, x):
        return x * torch.trunc(self.w)

def get_inputs():
    return [torch.randn(ROWS, COLS)]

def get_init_inputs():
    return [COLS]
