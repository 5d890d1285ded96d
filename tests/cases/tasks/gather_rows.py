# SPDX-License-Identifier: Apache-2.0
# Level 2: rows of a table by index, plus x.
import torch
import torch.nn as nn
import torch.nn.functional as F

TABLE = 32
ROWS = 18
COLS = 40


class Model(nn.Module):
    def __init__(self, table, cols):
        super().__init__()
        self.table = nn.Embedding(table, cols)

    def forward(self, index, x):
        return self.table.weight[index] + x


def get_inputs():
    return [torch.randint(0, TABLE, (ROWS,)), torch.randn(ROWS, COLS)]


def get_init_inputs():
    return [TABLE, COLS]
