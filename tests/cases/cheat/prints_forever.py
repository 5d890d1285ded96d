# task: tests/cases/tasks/swish.py
# expect: timeout @compile
# why: floods its standard output
import torch
import torch.nn as nn
import triton
import triton.language as tl

while True:
    print("pass " * 1000)
