# task: tests/cases/tasks/add_mul.py
# expect: pass @full_run
# why: asks for the current stream, times itself by events on it, and synchronises
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


@triton.jit
def mul_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x * y, mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.cuda.Stream(), torch.cuda.Stream()

    def forward(self, x, y):
        total, out = torch.empty_like(x), torch.empty_like(x)
        grid = (triton.cdiv(x.numel(), 128),)
        stream = torch.cuda.current_stream(x.device)
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record(stream)
        with torch.cuda.stream(stream):
            add_kernel[grid](x, y, total, x.numel(), BLOCK=128, launch_pdl=False)
            mul_kernel[grid](total, x, out, x.numel(), BLOCK=128)
        assert stream == torch.cuda.default_stream() and stream.cuda_stream == 0
        self.first.wait_stream(stream)
        end.record()
        stream.synchronize()
        torch.cuda.synchronize()
        begin.elapsed_time(end)
        return out
