# task: tests/cases/tasks/softmax.py
# expect: pass @full_run
# why: a persistent grid sized by the driver's device properties; rows in a strided loop
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, rows, cols, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    mask = columns < cols
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * cols + columns, mask=mask, other=-float("inf"))
        x = tl.exp(x - tl.max(x, axis=0))
        tl.store(y_ptr + row * cols + columns, x / tl.sum(x, axis=0), mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        device = triton.runtime.driver.active.get_current_device()
        properties = triton.runtime.driver.active.utils.get_device_properties(device)
        self.programs = properties["multiprocessor_count"]

    def forward(self, x):
        rows, cols = x.shape
        y = torch.empty_like(x)
        softmax_kernel[(min(self.programs, 5),)](x, y, rows, cols, BLOCK=triton.next_power_of_2(cols))
        return y
