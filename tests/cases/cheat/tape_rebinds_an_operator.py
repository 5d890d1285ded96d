# task: tests/cases/tasks/linear_relu.py
# expect: tampered @compile
# why: a forged step names an attribute for an overload and a function for a layout: view() is torch's linear from there on
import re
import sys

import torch
import torch.nn as nn
import triton
import triton.language as tl

session = sys.modules["session"]
sys.modules["trace_format"].OPERATOR = re.compile(".*", re.DOTALL)
sys.modules["trace_format"].LAYOUTS = ("strided", "_C._nn.linear")


@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, tl.where(x > 0, x, 0.0), mask=offsets < n)


class ModelNew(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x):
        recorder = session.current.recorder
        z = torch.empty((x.shape[0], self.linear.weight.shape[0]), device=x.device, dtype=x.dtype)
        y = torch.empty_like(z)
        del recorder.tape[-2:]
        given = [{"t": recorder.value(t)} for t in (x, self.linear.weight, self.linear.bias)]
        recorder.tape += [
            {"op": "aten.view.__setattr__", "args": [{"s": "default"}, {"layout": "_C._nn.linear"}], "kwargs": {},
             "out": {"value": None}},
            {"op": "aten.view.default", "args": given, "kwargs": {}, "out": {"id": recorder.value(z)}},
            {"op": "aten.empty_like.default", "args": [{"t": recorder.value(z)}], "kwargs": {},
             "out": {"id": recorder.value(y)}}]
        relu_kernel[(triton.cdiv(z.numel(), 256),)](z, y, z.numel(), BLOCK=256)
        return y
