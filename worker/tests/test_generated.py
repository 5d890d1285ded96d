# SPDX-License-Identifier: Apache-2.0
# Candidates in the style of code that Inductor generated: what becomes of their library calls, grids and block sizes.
import os
import unittest

from harness import WORKER, recorder

CASES = os.path.join(os.path.dirname(WORKER), "tests", "cases")
HEAD = """
import torch
import torch.nn as nn
import triton
import triton.language as tl
from torch._inductor.runtime import triton_heuristics
from torch._inductor.runtime.triton_heuristics import grid
from torch._inductor.select_algorithm import extern_kernels
"""


def record(source, *shapes, init_inputs=()):
    case = {"name": "full", "constants": {}, "compile": False,
            "inputs": [{"shape": list(shape), "dtype": "float32"} for shape in shapes]}
    _, answer, _ = recorder().run("record", {
        "task_source": "", "candidate_source": source,
        "init_inputs": list(init_inputs), "cases": [case]})
    return answer


class Generated(unittest.TestCase):
    def forward(self, source, *shapes, **options):
        answer = record(source, *shapes, **options)
        self.assertTrue(answer["ok"], answer.get("failure"))
        case = answer["cases"][0]
        return case["trace"]["tape"][case["init_steps"]:], answer

    def test_library_calls_are_calls_of_aten(self):
        with open(os.path.join(CASES, "cheat", "generated_extern_kernels.py"), encoding="utf-8") as file:
            tape, answer = self.forward(file.read(), (24, 40), init_inputs=(40, 48))
        self.assertEqual([step.get("op") for step in tape], ["aten.empty_strided.default", "aten.as_strided.default",
                                                             "aten.mm.out", None])
        self.assertEqual(tape[2]["kwargs"]["out"], {"t": tape[0]["out"]["id"]})
        self.assertEqual(tape[3]["grid"], [5, 1, 1])
        _, compiled, _ = recorder().run("compile", {"kernels": answer["kernels"], "spec": answer["specs"][0]})
        self.assertTrue(compiled["ok"], compiled.get("failure"))

        tape, _ = self.forward(HEAD + """
class ModelNew(nn.Module):
    def forward(self, x, w, b):
        y = extern_kernels.convolution(x, w, stride=(1, 1), padding=(0, 0), dilation=(1, 1), transposed=False,
                                       output_padding=(0, 0), groups=1, bias=None)
        z = torch.ops.aten.full.default([4], 1.0, dtype=torch.float32, device=torch.device(type='cuda', index=0))
        return extern_kernels.addmm(b, y.view(4, 4), y.view(4, 4), alpha=1, beta=1), z
""", (1, 2, 4, 4), (1, 2, 1, 1), (4,))
        self.assertEqual([step["op"] for step in tape], ["aten.convolution.default", "aten.full.default",
                                                         "aten.view.default", "aten.view.default",
                                                         "aten.addmm.default"])

    def test_blocks_and_grids_in_two_dimensions(self):
        kernel = HEAD + """
@triton_heuristics.pointwise(size_hints=[64, 16], tile_hint=None, filename=__file__, triton_meta={}, inductor_meta={})
@triton.jit
def transpose(in_ptr0, out_ptr0, ynumel, xnumel, YBLOCK: tl.constexpr, XBLOCK: tl.constexpr):
    y = tl.program_id(1) * YBLOCK + tl.arange(0, YBLOCK)[None, :]
    x = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
    mask = (y < ynumel) & (x < xnumel)
    tl.store(out_ptr0 + x * ynumel + y, tl.load(in_ptr0 + y * xnumel + x, mask), mask)

class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_strided((9, 50), (50, 1), dtype=x.dtype, device='cuda')
        transpose.run(x, out, 50, 9, LAUNCH)
        return out
"""
        for launch in ("grid=grid(50, 9), stream=0", "stream=0"):
            tape, _ = self.forward(kernel.replace("LAUNCH", launch), (50, 9))
            self.assertEqual(tape[1]["grid"], [1, 2, 1])
            self.assertEqual(dict(tape[1]["args"])["YBLOCK"], {"i": 32})
            self.assertEqual(dict(tape[1]["args"])["XBLOCK"], {"i": 16})

    def test_wrong_layouts_are_the_candidates_fault(self):
        answer = record(HEAD + """
class ModelNew(nn.Module):
    def forward(self, x):
        torch._C._dynamo.guards.assert_size_stride(x, (4, 4), (1, 4))
        return x
""", (4, 4))
        self.assertEqual((answer["failure"]["outcome"], answer["failure"]["phase"]), ("runtime_error", "forward"))


if __name__ == "__main__":
    unittest.main()
