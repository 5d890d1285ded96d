# task: tests/cases/tasks/swish.py
# expect: compile_error @compile
# why: an error that raises another one when it is asked what it says
import torch
import torch.nn as nn
import triton
import triton.language as tl


class Unspeakable(Exception):
    def __str__(self):
        raise KeyError("nothing to say")


class ModelNew(nn.Module):
    def __init__(self):
        raise Unspeakable("\udfff")
