# SPDX-License-Identifier: Apache-2.0
# Level 1: scales by how often it was called, which it counts in a buffer.
import torch
import torch.nn as nn

ROWS = 16
COLS = 250


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.ones(1))

    def forward(self, x):
        self.calls.add_(1.0)
        return x * self.calls


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
