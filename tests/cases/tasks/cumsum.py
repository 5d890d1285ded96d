# SPDX-License-Identifier: Apache-2.0
# Level 1: running sum along every row.
import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 6
COLS = 60


class Model(nn.Module):
    def forward(self, x):
        return torch.cumsum(x, dim=1)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
