# SPDX-License-Identifier: Apache-2.0
# Level 1: x * sigmoid(x).
import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 16
COLS = 250


class Model(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
