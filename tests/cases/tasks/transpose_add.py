# SPDX-License-Identifier: Apache-2.0
# Level 1: x transposed plus y.
import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 24
COLS = 36


class Model(nn.Module):
    def forward(self, x, y):
        return x.t() + y


def get_inputs():
    return [torch.randn(COLS, ROWS), torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
