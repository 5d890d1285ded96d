# task: tests/cases/tasks/linear_relu.py
# expect: rule_break @compile
# why: generated style: the matrix product comes from the library under another name, Triton adds bias and ReLU
import torch
import torch.nn as nn
import triton
import triton.language as tl
from torch._C import _cuda_getCurrentRawStream as get_raw_stream
from torch._inductor.runtime import triton_helpers
from torch._inductor.runtime.triton_heuristics import grid
from torch._inductor.select_algorithm import extern_kernels

empty_strided_cuda = torch._C._dynamo.guards._empty_strided_cuda
reinterpret_tensor = torch._C._dynamo.guards._reinterpret_tensor


@triton.jit
def triton_poi_fused_relu_0(in_out_ptr0, in_ptr0, xnumel, XBLOCK: tl.constexpr):
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x2 = xindex
    x0 = xindex % 48
    tmp0 = tl.load(in_out_ptr0 + x2, xmask)
    tmp1 = tl.load(in_ptr0 + x0, xmask, eviction_policy='evict_last')
    tmp2 = triton_helpers.maximum(tl.full([1], 0, tl.int32), tmp0 + tmp1)
    tl.store(in_out_ptr0 + x2, tmp2, xmask)


def call(args):
    primals_1, primals_2, primals_3 = args
    args.clear()
    with torch.cuda._DeviceGuard(0):
        torch.cuda.set_device(0)
        buf0 = empty_strided_cuda((24, 48), (48, 1), torch.float32)
        extern_kernels.mm(primals_3, reinterpret_tensor(primals_1, (40, 48), (1, 40), 0), out=buf0)
        get_raw_stream(0)
        triton_poi_fused_relu_0[grid(1152)](buf0, primals_2, 1152, XBLOCK=256, num_warps=4, num_stages=1)
    return (buf0,)


class ModelNew(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, input_0):
        return call([self.linear.weight, self.linear.bias, input_0])[0]
