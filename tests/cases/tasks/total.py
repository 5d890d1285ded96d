# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import torch.nn.functional as F


SIZE = 3000

class Model(nn.Module):
    def forward(self, x):
        return x.sum()

def get_inputs():
    return [torch.randn(SIZE)]

def get_init_inputs():
    return []
