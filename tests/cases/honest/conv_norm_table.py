# task: tests/cases/tasks/conv_bn.py
# expect: pass @full_run
# why: __init__ copies what a batch norm holds into the rows of a table
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def conv_kernel(x_ptr, w_ptr, b_ptr, g_ptr, beta_ptr, mean_ptr, var_ptr, y_ptr, C, H, W, K, P, eps, BP: tl.constexpr, BK: tl.constexpr, BR: tl.constexpr):
    p = tl.program_id(0) * BP + tl.arange(0, BP)
    k = tl.arange(0, BK)
    n, hw = p // (H * W), p % (H * W)
    h, w = hw // W, hw % W
    acc = tl.zeros((BP, BK), tl.float32)
    for start in range(0, 9 * C, BR):
        r = start + tl.arange(0, BR)
        c, rs = r % C, r // C
        hh, ww = h[:, None] + (rs // 3)[None, :] - 1, w[:, None] + (rs % 3)[None, :] - 1
        ok = (p < P)[:, None] & (r < 9 * C)[None, :] & (hh >= 0) & (hh < H) & (ww >= 0) & (ww < W)
        x = tl.load(x_ptr + ((n[:, None] * C + c[None, :]) * H + hh) * W + ww, mask=ok, other=0.0)
        wt = tl.load(w_ptr + r[:, None] * K + k[None, :], mask=(r < 9 * C)[:, None] & (k < K)[None, :], other=0.0)
        acc += tl.dot(x, wt, input_precision="ieee")
    m = k < K
    acc += tl.load(b_ptr + k, mask=m, other=0.0)[None, :]
    scale = tl.load(g_ptr + k, mask=m, other=0.0) / tl.sqrt(tl.load(var_ptr + k, mask=m, other=1.0) + eps)
    shift = tl.load(beta_ptr + k, mask=m, other=0.0) - tl.load(mean_ptr + k, mask=m, other=0.0) * scale
    acc = tl.maximum(acc * scale[None, :] + shift[None, :], 0.0)
    tl.store(y_ptr + (n[:, None] * K + k[None, :]) * H * W + hw[:, None], acc, mask=(p < P)[:, None] & m[None, :])


class ModelNew(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.bn = nn.BatchNorm2d(outputs)
        stats = torch.empty(4, outputs)
        with torch.no_grad():
            stats[0].copy_(self.bn.weight); stats[1].copy_(self.bn.bias); stats[2].copy_(self.bn.running_mean); stats[3].copy_(self.bn.running_var)
        self.stats = stats

    def forward(self, x):
        n, c, h, w = x.shape
        bn, bias, wt = self.bn, self.conv.bias, self.conv.weight.permute(2, 3, 1, 0).contiguous()
        k = bias.shape[0]
        y = torch.empty(n, k, h, w, device=x.device, dtype=x.dtype)
        conv_kernel[(triton.cdiv(n * h * w, 32),)](x, wt, bias, self.stats[0], self.stats[1], self.stats[2], self.stats[3], y, c, h, w, k, n * h * w, bn.eps, BP=32, BK=max(16, triton.next_power_of_2(k)), BR=16)
        return y
