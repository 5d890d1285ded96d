# SPDX-License-Identifier: Apache-2.0
# Level 1: sum of every row.
import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 11
COLS = 300


class Model(nn.Module):
    def forward(self, x):
        return x.sum(dim=1)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
