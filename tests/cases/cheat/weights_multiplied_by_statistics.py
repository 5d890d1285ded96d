# task: tests/cases/tasks/two_layers.py
# expect: rule_break @compile
# why: products come as the means and variances that a batch norm in training leaves behind
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def both_kernel(x_ptr, p_ptr, out_ptr, middle, inputs, outputs, IN: tl.constexpr, OUT: tl.constexpr):
    row = tl.program_id(0)
    i, o = tl.arange(0, IN), tl.arange(0, OUT)
    mask = (o < outputs)[:, None] & (i < inputs)[None, :]
    at = o[:, None] * inputs + i[None, :]
    x = tl.load(x_ptr + row * inputs + i, mask=i < inputs, other=0.0)
    w = tl.zeros((OUT, IN), tl.float32)
    for m in range(middle):
        square = tl.load(p_ptr + m * inputs * outputs + at, mask=mask, other=0.0)
        variance = tl.load(p_ptr + (middle + m) * inputs * outputs + at, mask=mask, other=0.0)
        w += 2 * square - 0.5 * variance
    tl.store(out_ptr + row * outputs + o, tl.sum(w * x[None, :], axis=1), mask=o < outputs)


class ModelNew(nn.Module):
    def __init__(self, inputs, middle, outputs):
        super().__init__()
        first = nn.Linear(inputs, middle, bias=False).weight.detach()
        second = nn.Linear(middle, outputs, bias=False).weight.detach()
        a = first[:, None, :].expand(middle, outputs, inputs).reshape(-1)
        b = second.t()[:, :, None].expand(middle, outputs, inputs).reshape(-1)

        def moments(pair):
            mean, variance = torch.zeros(pair.shape[1]), torch.zeros(pair.shape[1])
            torch.native_batch_norm(pair, None, None, mean, variance, True, 1.0, 0.0)
            return mean, variance

        mean, variance = moments(torch.stack((a, b)))                            # (a + b) / 2, (a - b)^2 / 2
        _, square = moments(torch.stack((mean, torch.zeros_like(mean))))         # (a + b)^2 / 8
        self.register_buffer("parts", torch.stack((square, variance)).view(2, middle, outputs, inputs))

    def forward(self, x):
        _, middle, outputs, inputs = self.parts.shape
        out = torch.empty(x.shape[0], outputs, device=x.device, dtype=x.dtype)
        both_kernel[(x.shape[0],)](x, self.parts, out, middle, inputs, outputs, IN=triton.next_power_of_2(inputs),
                                   OUT=triton.next_power_of_2(outputs))
        return out
