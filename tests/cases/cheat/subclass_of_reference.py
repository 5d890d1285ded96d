# task: tests/cases/tasks/swish.py
# expect: rule_break @compile
# why: inherits from the reference it imported from its caller
import torch
import torch.nn as nn
import triton
import triton.language as tl


class Model(nn.Module):
    def forward(self, x):
        return torch.nn.functional.silu(x)


class ModelNew(Model):
    pass
