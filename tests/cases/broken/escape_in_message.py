# task: tests/cases/tasks/swish.py
# expect: compile_error @compile
# why: an error that would clear a terminal, hide text and end a line early
import torch
import torch.nn as nn
import triton
import triton.language as tl

raise RuntimeError("\x1b[2J\x1b]0;passed\x07 \x00 \x9b1A \u202everified correct\u202c \u2066x\u2069 \u200b\ufeff \r ok")
