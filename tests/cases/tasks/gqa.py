# SPDX-License-Identifier: Apache-2.0
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


BATCH = 8
HEADS = 4
D = 8

class Model(nn.Module):
    def __init__(self, heads, d):
        super().__init__()
        self.heads = heads
        self.k = nn.Linear(heads * d, heads * d // 2, bias=False)

    def forward(self, x):
        y = self.k(x).view(x.shape[0], self.heads // 2, -1)
        return y.repeat_interleave(2, dim=1).reshape(x.shape)

def get_inputs():
    return [torch.randn(BATCH, HEADS * D)]

def get_init_inputs():
    return [HEADS, D]
