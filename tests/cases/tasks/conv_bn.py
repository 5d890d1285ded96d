# SPDX-License-Identifier: Apache-2.0
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


BATCH = 2
IN = 3
OUT = 8
SIZE = 10

class Model(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.bn = nn.BatchNorm2d(outputs)
        self.bn.eval()

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)))

def get_inputs():
    return [torch.randn(BATCH, IN, SIZE, SIZE)]

def get_init_inputs():
    return [IN, OUT]
