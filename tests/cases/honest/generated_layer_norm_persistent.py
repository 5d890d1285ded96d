# task: tests/cases/tasks/layer_norm.py
# expect: pass @full_run
# why: generated style, stripped of its decorators: a persistent reduction with helpers, launched with grid(...)
import torch
import torch.nn as nn
import triton
import triton.language as tl
from torch._C import _cuda_getCurrentRawStream as get_raw_stream
from torch._inductor.runtime import triton_helpers
from torch._inductor.runtime.triton_helpers import libdevice
from torch._inductor.runtime.triton_heuristics import grid

assert_size_stride = torch._C._dynamo.guards.assert_size_stride
empty_strided_cuda = torch._C._dynamo.guards._empty_strided_cuda
reinterpret_tensor = torch._C._dynamo.guards._reinterpret_tensor


@triton.jit
def triton_per_fused_native_layer_norm_0(in_ptr0, in_ptr1, in_ptr2, out_ptr0, xnumel, rnumel, XBLOCK: tl.constexpr):
    xnumel = 10
    RBLOCK: tl.constexpr = 128
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    rindex = tl.arange(0, RBLOCK)[None, :]
    rmask = rindex < rnumel
    r1 = rindex
    x0 = xindex
    tmp0 = tl.load(in_ptr0 + (r1 + 96 * x0), rmask & xmask, other=0.0)
    tmp1 = tl.broadcast_to(tmp0, [XBLOCK, RBLOCK])
    tmp3 = tl.where(rmask & xmask, tmp1, 0)
    tmp4 = tl.sum(tmp3, 1)[:, None]
    tmp5 = tmp4 / 96.0
    tmp6 = tl.where(rmask & xmask, tmp1 - tmp5, 0)
    tmp7 = tl.sum(tmp6 * tmp6, 1)[:, None]
    tmp8 = libdevice.rsqrt(tmp7 / 96.0 + 1e-05)
    tmp9 = tl.load(in_ptr1 + r1, rmask, eviction_policy='evict_last', other=0.0)
    tmp10 = tl.load(in_ptr2 + r1, rmask, eviction_policy='evict_last', other=0.0)
    tmp11 = tmp6 * tmp8 * tmp9 + tmp10
    tl.store(out_ptr0 + (r1 + 96 * x0), tmp11, rmask & xmask)


def call(args):
    primals_1, primals_2, primals_3 = args
    args.clear()
    assert_size_stride(primals_1, (96,), (1,))
    assert_size_stride(primals_2, (96,), (1,))
    assert_size_stride(primals_3, (10, 96), (96, 1))
    with torch.cuda._DeviceGuard(0):
        torch.cuda.set_device(0)
        buf0 = empty_strided_cuda((1, 10, 96), (960, 96, 1), torch.float32)
        get_raw_stream(0)
        triton_per_fused_native_layer_norm_0[grid(10)](primals_3, primals_1, primals_2, buf0, 10, 96, XBLOCK=1,
                                                       num_warps=2, num_stages=1)
    return reinterpret_tensor(buf0, (10, 96), (96, 1), 0), primals_3


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.norm = nn.LayerNorm(cols)

    def forward(self, input_0):
        primals_1 = self.norm.weight
        primals_2 = self.norm.bias
        output = call([primals_1, primals_2, input_0])
        return output[0]
