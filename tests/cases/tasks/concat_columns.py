# SPDX-License-Identifier: Apache-2.0
# Level 1: two matrices side by side.
import torch
import torch.nn as nn

ROWS = 24
COLS = 36


class Model(nn.Module):
    def forward(self, x, y):
        return torch.cat([x, y], dim=1)


def get_inputs():
    return [torch.randn(ROWS, COLS), torch.randn(ROWS, 2 * COLS)]


def get_init_inputs():
    return []
