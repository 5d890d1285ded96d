# SPDX-License-Identifier: Apache-2.0
# Level 1: (x + y) * x, two inputs.
import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 17
COLS = 99


class Model(nn.Module):
    def forward(self, x, y):
        return (x + y) * x


def get_inputs():
    return [torch.randn(ROWS, COLS), torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
