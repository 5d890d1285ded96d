# SPDX-License-Identifier: Apache-2.0
# Level 2: two linear layers of one size without biases.
import torch
import torch.nn as nn

BATCH = 12
SIZE = 24


class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.first = nn.Linear(size, size, bias=False)
        self.second = nn.Linear(size, size, bias=False)

    def forward(self, x):
        return self.second(self.first(x))


def get_inputs():
    return [torch.randn(BATCH, SIZE)]


def get_init_inputs():
    return [SIZE]
