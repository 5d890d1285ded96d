# SPDX-License-Identifier: Apache-2.0
# Level 2: leaky ReLU with a given slope, times a constant; the module's arguments have names.
import torch
import torch.nn as nn
import torch.nn.functional as F

N = 3000


class Model(nn.Module):
    def __init__(self, slope, *, scale=1.0):
        super().__init__()
        self.slope = slope
        self.scale = scale

    def forward(self, x):
        return self.scale * F.leaky_relu(x, self.slope)


def get_inputs():
    return [torch.randn(N)]


def get_init_inputs():
    return [[0.1], {"scale": 0.5}]
