# SPDX-License-Identifier: Apache-2.0
# Level 2: linear layer and ReLU.
import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 24
IN = 40
OUT = 48


class Model(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x):
        return torch.relu(self.linear(x))


def get_inputs():
    return [torch.randn(BATCH, IN)]


def get_init_inputs():
    return [IN, OUT]
