# task: tests/cases/tasks/mean_var.py
# expect: wrong_output @tiny_run
# why: stores the expected value of the answer: 0 and 1
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def constant_kernel(mean_ptr, var_ptr):
    row = tl.program_id(0)
    tl.store(mean_ptr + row, 0.0)
    tl.store(var_ptr + row, 1.0)


class ModelNew(nn.Module):
    def forward(self, x):
        mean = torch.empty(x.shape[0], device=x.device)
        var = torch.empty(x.shape[0], device=x.device)
        constant_kernel[(x.shape[0],)](mean, var)
        return mean, var
