# SPDX-License-Identifier: Apache-2.0
# Level 2: leaky ReLU with a given slope, times a constant.
import torch
import torch.nn as nn
import torch.nn.functional as F

N = 3000


class Model(nn.Module):
    def __init__(self, slope):
        super().__init__()
        self.slope = slope

    def forward(self, x):
        return 0.5 * F.leaky_relu(x, self.slope)


def get_inputs():
    return [torch.randn(N)]


def get_init_inputs():
    return [0.1]
