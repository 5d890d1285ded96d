# SPDX-License-Identifier: Apache-2.0
# Writes kernelbook.jsonl: rows in the layout of GPUMODE/KernelBook, one for each way an importer may meet them.
#
#   python3 src/data/testdata/make_kernelbook.py
import json
import pathlib

PREFIX = """import torch
from torch._inductor.select_algorithm import extern_kernels
import triton
import triton.language as tl
from torch._inductor.runtime.triton_heuristics import grid
from torch._C import _cuda_getCurrentRawStream as get_raw_stream
import torch.nn as nn
assert_size_stride = torch._C._dynamo.guards.assert_size_stride
empty_strided_cuda = torch._C._dynamo.guards._empty_strided_cuda
reinterpret_tensor = torch._C._dynamo.guards._reinterpret_tensor

"""

SCALE = """import torch
import torch.nn as nn


class Doubler(nn.Module):

\tdef __init__(self, factor, offset=1.0):
\t\tsuper(Doubler, self).__init__()
\t\tself.factor = factor  # \u00fcbrig \u2713
\t\tself.offset = offset

\tdef forward(self, x):
\t\treturn x * self.factor + self.offset


def get_inputs():
    return [torch.rand([4, 4, 4, 4])]


def get_init_inputs():
    return [[], {'factor': 2.0}]
"""

SCALE_TRITON = PREFIX + """
@triton.jit
def triton_poi_fused_add_mul_0(in_ptr0, out_ptr0, xnumel, XBLOCK: tl.constexpr):
    xnumel = 256
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x0 = xindex
    tmp0 = tl.load(in_ptr0 + x0, xmask)
    tmp1 = tmp0 * 2.0
    tmp2 = tmp1 + OFFSET
    tl.store(out_ptr0 + x0, tmp2, xmask)


def call(args):
    arg0_1, = args
    args.clear()
    assert_size_stride(arg0_1, (4, 4, 4, 4), (64, 16, 4, 1))
    with torch.cuda._DeviceGuard(0):
        torch.cuda.set_device(0)
        buf0 = empty_strided_cuda((4, 4, 4, 4), (64, 16, 4, 1), torch.float32)
        get_raw_stream(0)
        triton_poi_fused_add_mul_0[grid(256)](arg0_1, buf0, 256, XBLOCK=256, num_warps=4, num_stages=1)
        del arg0_1
    return buf0,


class DoublerNew(nn.Module):

    def __init__(self, factor, offset=1.0):
        super(DoublerNew, self).__init__()
        self.factor = factor
        self.offset = offset

    def forward(self, input_0):
        arg0_1 = input_0
        output = call([arg0_1])
        return output[0]
"""

LINEAR = """import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x


class Head(nn.Module):
    def __init__(self, width, bias=True):
        super(Head, self).__init__()
        self.inner = Model()
        self.dense = nn.Linear(width, width, bias=bias)

    def forward(self, x):
        return torch.relu(self.dense(self.inner(x)))


def get_inputs():
    return [torch.rand([4, 8])]


def get_init_inputs():
    return [[8], {}]
"""

LINEAR_TRITON = PREFIX + """
@triton.jit
def triton_poi_fused_relu_0(in_out_ptr0, in_ptr0, xnumel, XBLOCK: tl.constexpr):
    xnumel = 32
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    tmp0 = tl.load(in_out_ptr0 + xindex, xmask) + tl.load(in_ptr0 + xindex % 8, xmask)
    tl.store(in_out_ptr0 + xindex, tl.maximum(tmp0, 0.0), xmask)


def call(args):
    primals_1, primals_2, primals_3 = args
    args.clear()
    with torch.cuda._DeviceGuard(0):
        torch.cuda.set_device(0)
        buf0 = empty_strided_cuda((4, 8), (8, 1), torch.float32)
        extern_kernels.mm(primals_3, reinterpret_tensor(primals_1, (8, 8), (1, 8), 0), out=buf0)
        buf1 = buf0
        get_raw_stream(0)
        triton_poi_fused_relu_0[grid(32)](buf1, primals_2, 32, XBLOCK=32, num_warps=1, num_stages=1)
    return buf1,


class HeadNew(nn.Module):
    def __init__(self, width, bias=True):
        super(HeadNew, self).__init__()
        self.dense = nn.Linear(width, width, bias=bias)

    def forward(self, input_0):
        return call([self.dense.weight, self.dense.bias, input_0])[0]
"""


def row(entry, python, triton, **more):
    base = {"repo_name": "example/kernels", "entry_point": entry, "python_code": python, "triton_code": triton,
            "original_triton_code": "", "module_name": entry, "synthetic": False, "licenses": ["MIT"], "stars": 1,
            "sha": "0" * 40, "repo_link": "https://example.org/kernels"}
    return {**base, **more}


good = SCALE_TRITON.replace("OFFSET", "1.0")
rows = [
    row("Doubler", SCALE, good, uuid=1, licenses=["MIT", "BSD-3-Clause"]),             # Pure Triton, right.
    row("Head", LINEAR, LINEAR_TRITON, uuid=2),                                        # Calls extern_kernels.
    row("Doubler", SCALE, SCALE_TRITON.replace("OFFSET", "1.5"), uuid=3),              # Wrong output.
    row("Absent", SCALE, good, uuid=4),                                                # No such class.
    row("Doubler", SCALE.replace("def forward(self, x)", "def forward(self, x"), good, uuid=5),  # Syntax error.
    row("Doubler", SCALE, good, uuid=1),                                               # Id and text used before.
    row("Doubler", SCALE + "\nimport module_that_nobody_has\n", good, uuid=7),         # Import that is absent.
    row("Doubler", SCALE.replace("return x * self.factor", "while True:\n\t\t\tpass\n\t\treturn x"), good, uuid=8),
    row("Doubler", SCALE.replace("'factor'", "'faktor'"), good, uuid=9),               # No such argument.
    row("Doubler", SCALE, "", uuid=10),                                                # No Triton code.
    row("Doubler", SCALE, good.replace("@triton.jit", ""), uuid=11),                   # No kernel.
]
lines = [json.dumps(item) for item in rows]
lines.insert(4, lines[0][:400])                                                        # A line cut in half.
lines.insert(5, "[1, 2]")
path = pathlib.Path(__file__).with_name("kernelbook.jsonl")
path.write_text("\n".join(lines) + "\n", encoding="utf-8")
