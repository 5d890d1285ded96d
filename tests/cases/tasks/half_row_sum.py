# SPDX-License-Identifier: Apache-2.0
# Level 1: sum of every row in half precision.
import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 9
COLS = 200


class Model(nn.Module):
    def forward(self, x):
        return x.sum(dim=1)


def get_inputs():
    return [torch.randn(ROWS, COLS).half()]


def get_init_inputs():
    return []
