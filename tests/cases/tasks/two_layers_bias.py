# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import torch.nn.functional as F


BATCH = 12
IN = 20
MIDDLE = 24
OUT = 28

class Model(nn.Module):
    def __init__(self, inputs, middle, outputs):
        super().__init__()
        self.first = nn.Linear(inputs, middle, bias=False)
        self.second = nn.Linear(middle, outputs)

    def forward(self, x):
        return self.second(self.first(x))

def get_inputs():
    return [torch.randn(BATCH, IN)]

def get_init_inputs():
    return [IN, MIDDLE, OUT]
