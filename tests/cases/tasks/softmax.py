# SPDX-License-Identifier: Apache-2.0
# Level 1: softmax over rows.
import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 12
COLS = 100


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [3.0 * torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
