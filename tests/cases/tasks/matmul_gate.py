# SPDX-License-Identifier: Apache-2.0
# Level 2: matrix product, and a jump where it changes its sign.
import torch
import torch.nn as nn
import torch.nn.functional as F

M = 64
K = 56
N = 64


class Model(nn.Module):
    def forward(self, a, b):
        h = a @ b
        return torch.sign(h) + 0.1 * h


def get_inputs():
    return [torch.randn(M, K), torch.randn(K, N)]


def get_init_inputs():
    return []
