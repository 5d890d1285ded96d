# task: tests/cases/tasks/concat_columns.py
# expect: rule_break @tiny_run
# why: the library moves the data, the kernel copies one element
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def first_kernel(x_ptr, out_ptr):
    tl.store(out_ptr, tl.load(x_ptr))


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty(x.shape[0], x.shape[1] + y.shape[1], device=x.device, dtype=x.dtype)
        out[:, x.shape[1]:] = y
        out[:, 1:x.shape[1]] = x[:, 1:]
        out[1:, 0] = x[1:, 0]
        first_kernel[(1,)](x, out)
        return out
