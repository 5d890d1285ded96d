# SPDX-License-Identifier: Apache-2.0
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


ROWS = 8
COLS = 40

class Model(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.a = nn.LayerNorm(cols)
        self.b = nn.LayerNorm(cols)

    def forward(self, x):
        return self.b(self.a(x))

def get_inputs():
    return [torch.randn(ROWS, COLS)]

def get_init_inputs():
    return [COLS]
