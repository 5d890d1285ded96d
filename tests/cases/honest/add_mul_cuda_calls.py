# task: tests/cases/tasks/add_mul.py
# expect: pass @full_run
# why: asks torch.cuda the usual harmless questions and synchronises at the end
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_mul_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, (x + y) * x, mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        if torch.cuda.is_available():
            properties = torch.cuda.get_device_properties(torch.cuda.current_device())
            self.programs = min(32, properties.multi_processor_count)

    def forward(self, x, y):
        assert x.is_cuda and y.device.type == "cuda"
        x, y = x.cuda(), y.to(x.device)
        major, _ = torch.cuda.get_device_capability(x.device)
        out = torch.empty(x.shape, device=x.device, dtype=x.dtype)
        block = 128 if major >= 8 else 64
        with torch.cuda.device(x.device):
            add_mul_kernel[(triton.cdiv(x.numel(), block),)](x, y, out, x.numel(), BLOCK=block)
        torch.cuda.synchronize()
        return out
