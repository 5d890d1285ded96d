# SPDX-License-Identifier: Apache-2.0
# Level 1: what is left of three times x without its fraction.
import torch
import torch.nn as nn

ROWS = 16
COLS = 250


class Model(nn.Module):
    def forward(self, x):
        return torch.trunc(x * 3.0)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
