# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import torch.nn.functional as F


BATCH = 12
IN = 20
OUT = 28

class Model(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs) * 0.1)

    def forward(self, x):
        return F.linear(x, self.weight * self.weight)

def get_inputs():
    return [torch.randn(BATCH, IN)]

def get_init_inputs():
    return [IN, OUT]
