# task: tests/cases/tasks/swish.py
# expect: rule_break @compile
# why: plain PyTorch, no Triton at all
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)
