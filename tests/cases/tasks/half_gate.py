# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import torch.nn.functional as F


ROWS = 16
COLS = 250

class Model(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.gate = nn.Parameter(torch.randn(cols).half())

    def forward(self, x):
        return x * torch.sigmoid(self.gate)

def get_inputs():
    return [torch.randn(ROWS, COLS).half()]

def get_init_inputs():
    return [COLS]
