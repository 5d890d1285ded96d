# SPDX-License-Identifier: Apache-2.0
# Level 1: matrix product.
import torch
import torch.nn as nn
import torch.nn.functional as F

M = 40
K = 56
N = 48


class Model(nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.randn(M, K), torch.randn(K, N)]


def get_init_inputs():
    return []
