# task: tests/cases/tasks/swish.py
# expect: runtime_error @compile
# why: an error whose text holds lone surrogates, which UTF-8 cannot: an honest mistake with bytes that were no text
import torch
import torch.nn as nn
import triton
import triton.language as tl


class ModelNew(nn.Module):
    def forward(self, x):
        raise ValueError("no such file: " + b"caf\xe9 \xff".decode("utf-8", "surrogateescape") + "\ud800")
