# SPDX-License-Identifier: Apache-2.0
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


BATCH = 2
HEADS = 2
T = 16
D = 16

class Model(nn.Module):
    def __init__(self, heads, t, d):
        super().__init__()
        self.heads, self.d = heads, d
        self.qkv = nn.Linear(heads * d, 3 * heads * d)
        self.out = nn.Linear(heads * d, heads * d)
        self.register_buffer("mask", torch.tril(torch.ones(t, t)))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).split(c, dim=2)
        q, k, v = (y.view(b, t, self.heads, self.d).transpose(1, 2) for y in (q, k, v))
        a = (q @ k.transpose(-2, -1)) / math.sqrt(self.d)
        a = a.masked_fill(self.mask[:t, :t] == 0, float("-inf"))
        y = F.softmax(a, dim=-1) @ v
        return self.out(y.transpose(1, 2).reshape(b, t, c))

def get_inputs():
    return [torch.randn(BATCH, T, HEADS * D)]

def get_init_inputs():
    return [HEADS, T, D]
