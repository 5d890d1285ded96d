# task: tests/cases/tasks/conv_instance_norm.py
# expect: pass @full_run
# expect-fp32: wrong_output @tiny_run
# expect-small-inputs: pass @full_run
# why: at a larger size the second kernel is the one compiled already, and the first, which multiplies in TF32, is not
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def conv_kernel(x_ptr, w_ptr, bias_ptr, out_ptr, pixels, channels, depth, out_h, out_w, in_c, height, width,
                KH: tl.constexpr, KW: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    p = (tl.program_id(0) * BM + tl.arange(0, BM))[:, None]
    c = (tl.program_id(1) * BN + tl.arange(0, BN))[None, :]
    n, i, j = p // (out_h * out_w), (p // out_w) % out_h, p % out_w
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, depth, BK):
        ka = (start + tl.arange(0, BK))[None, :]
        kb = (start + tl.arange(0, BK))[:, None]
        ci, ki, kj = ka // (KH * KW), (ka // KW) % KH, ka % KW
        a = tl.load(x_ptr + ((n * in_c + ci) * height + i + ki) * width + j + kj, mask=(p < pixels) & (ka < depth), other=0.0)
        b = tl.load(w_ptr + c * depth + kb, mask=(c < channels) & (kb < depth), other=0.0)
        acc = tl.dot(a, b, acc)
    acc += tl.load(bias_ptr + c, mask=c < channels, other=0.0)
    tl.store(out_ptr + ((n * channels + c) * out_h + i) * out_w + j, acc, mask=(p < pixels) & (c < channels))


@triton.jit
def norm_kernel(x_ptr, out_ptr, size, eps, BLOCK: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, BLOCK)
    mask = tl.arange(0, BLOCK) < size
    x = tl.load(x_ptr + at, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / size
    d = tl.where(mask, x - mean, 0.0)
    y = d / tl.sqrt(tl.sum(d * d, axis=0) / size + eps)
    tl.store(out_ptr + at, tl.maximum(y, 0.0), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)

    def forward(self, x):
        n, in_c, height, width = x.shape
        weight = self.conv.weight
        channels, _, kh, kw = weight.shape
        out_h, out_w = height - kh + 1, width - kw + 1
        middle = torch.empty((n, channels, out_h, out_w), device=x.device, dtype=x.dtype)
        pixels, size = n * out_h * out_w, out_h * out_w
        conv_kernel[(triton.cdiv(pixels, 32), triton.cdiv(channels, 16))](
            x, weight, self.conv.bias, middle, pixels, channels, in_c * kh * kw, out_h, out_w, in_c, height, width,
            KH=kh, KW=kw, BM=32, BN=16, BK=16)
        out = torch.empty_like(middle)
        norm_kernel[(n * channels,)](middle, out, size, 1e-5, BLOCK=256)
        return out
