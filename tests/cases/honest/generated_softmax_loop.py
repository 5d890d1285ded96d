# task: tests/cases/tasks/softmax.py
# expect: pass @full_run
# why: generated style: a looped reduction under its decorator, blocks chosen from size hints, max from triton_helpers
import torch
import torch.nn as nn
import triton
import triton.language as tl
from torch._C import _cuda_getCurrentRawStream as get_raw_stream
from torch._inductor.runtime import triton_helpers, triton_heuristics
from torch._inductor.runtime.hints import DeviceProperties, ReductionHint
from torch._inductor.runtime.triton_helpers import math as tl_math
from torch._inductor.runtime.triton_heuristics import grid

empty_strided_cuda = torch._C._dynamo.guards._empty_strided_cuda


@triton_heuristics.reduction(
    size_hints=[16, 128],
    reduction_hint=ReductionHint.INNER,
    filename=__file__,
    triton_meta={'signature': {'in_ptr0': '*fp32', 'out_ptr0': '*fp32', 'xnumel': 'i32', 'rnumel': 'i32'},
                 'device': DeviceProperties(type='cuda', index=0, multi_processor_count=132, cc=90), 'constants': {}},
    inductor_meta={'kernel_name': 'triton_red_fused_softmax_0', 'num_load': 3, 'num_reduction': 2}
)
@triton.jit
def triton_red_fused_softmax_0(in_ptr0, out_ptr0, xnumel, rnumel, XBLOCK: tl.constexpr, RBLOCK: tl.constexpr):
    xnumel = 12
    rnumel = 100
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    rbase = tl.arange(0, RBLOCK)[None, :]
    x0 = xindex
    _tmp2 = tl.full([XBLOCK, RBLOCK], float("-inf"), tl.float32)
    for roffset in range(0, rnumel, RBLOCK):
        rindex = roffset + rbase
        rmask = rindex < rnumel
        tmp0 = tl.load(in_ptr0 + (rindex + 100 * x0), rmask & xmask, eviction_policy='evict_last', other=0.0)
        tmp1 = tl.broadcast_to(tmp0, [XBLOCK, RBLOCK])
        tmp3 = triton_helpers.maximum(_tmp2, tmp1)
        _tmp2 = tl.where(rmask & xmask, tmp3, _tmp2)
    tmp2 = triton_helpers.max2(_tmp2, 1)[:, None]
    _tmp6 = tl.full([XBLOCK, RBLOCK], 0, tl.float32)
    for roffset in range(0, rnumel, RBLOCK):
        rindex = roffset + rbase
        rmask = rindex < rnumel
        tmp4 = tl.load(in_ptr0 + (rindex + 100 * x0), rmask & xmask, other=0.0)
        tmp5 = tl_math.exp(tmp4 - tmp2)
        _tmp6 = tl.where(rmask & xmask, _tmp6 + tmp5, _tmp6)
    tmp6 = tl.sum(_tmp6, 1)[:, None]
    for roffset in range(0, rnumel, RBLOCK):
        rindex = roffset + rbase
        rmask = rindex < rnumel
        tmp7 = tl.load(in_ptr0 + (rindex + 100 * x0), rmask & xmask, other=0.0)
        tl.store(out_ptr0 + (rindex + 100 * x0), tl_math.exp(tmp7 - tmp2) / tmp6, rmask & xmask)


def call(args):
    arg0_1, = args
    args.clear()
    with torch.cuda._DeviceGuard(0):
        torch.cuda.set_device(0)
        buf0 = empty_strided_cuda((12, 100), (100, 1), torch.float32)
        stream0 = get_raw_stream(0)
        triton_red_fused_softmax_0.run(arg0_1, buf0, 12, 100, grid=grid(12), stream=stream0)
        del arg0_1
    return (buf0,)


class ModelNew(nn.Module):
    def forward(self, input_0):
        return call([input_0])[0]
