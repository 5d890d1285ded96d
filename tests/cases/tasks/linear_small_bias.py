# SPDX-License-Identifier: Apache-2.0
# Level 2: matrix product, and a bias that is small beside it.
import torch
import torch.nn as nn

BATCH = 24
IN = 64
OUT = 48


class Model(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs) * 0.5)
        self.bias = nn.Parameter(torch.randn(outputs) * 3.0e-4)

    def forward(self, x):
        return x @ self.weight + self.bias


def get_inputs():
    return [torch.randn(BATCH, IN)]


def get_init_inputs():
    return [IN, OUT]
