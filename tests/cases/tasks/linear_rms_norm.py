# SPDX-License-Identifier: Apache-2.0
# Level 2: matrix product, divided by the root mean square of each row.
import torch
import torch.nn as nn

BATCH = 24
IN = 64
OUT = 64
EPS = 1.0e-3


class Model(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs) * 0.5)

    def forward(self, x):
        y = x @ self.weight
        return y / torch.sqrt((y * y).mean(dim=1, keepdim=True) + EPS)


def get_inputs():
    return [torch.randn(BATCH, IN)]


def get_init_inputs():
    return [IN, OUT]
