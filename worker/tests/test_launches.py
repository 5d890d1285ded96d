# SPDX-License-Identifier: Apache-2.0
# Launches: what a trace says about a kernel launch, with and without compiling, and the job that compiles.
import unittest

from harness import recorder

HEAD = """
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

LIMIT = tl.constexpr(4.0)

@triton.jit
def helper(x):
    return tl.minimum(x * 2.0, LIMIT)
"""
KERNEL = """
@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y_ptr + offsets, helper(tl.load(x_ptr + offsets, mask=mask)), mask=mask)
"""
CONFIGS = """
@triton.autotune([triton.Config({'BLOCK': b}, num_warps=w, num_stages=s) for b, w, s in %s], key=['n'])
@triton.jit"""


def model(forward, kernel=KERNEL):
    return HEAD + kernel + f"""
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        {forward}
        return y
"""


def run(job, args):
    done, answer, area = recorder().run(job, args)
    if answer is None:
        raise AssertionError(f"no answer: {done}")
    return answer, bytes(area)


def image_of(cubin, area):
    at = cubin["tensor"]["offset"]
    return area[at:at + cubin["tensor"]["nbytes"]]


def record(source, compile=False, shape=(200,)):
    spec = {"shape": list(shape), "dtype": "float32"}
    return run("record", {"task_source": "", "candidate_source": source,
                          "cases": [{"name": "full", "constants": {}, "inputs": [spec], "compile": compile}]})


class WithAnswers(unittest.TestCase):
    def launches(self, source, compile=False, **options):
        answer, area = record(source, compile, **options)
        self.assertTrue(answer["ok"], answer.get("failure"))
        return [step for step in answer["cases"][0]["trace"]["tape"] if "launch" in step], answer, area

    def compiled(self, answer, spec):
        result, area = run("compile", {"kernels": answer["kernels"], "spec": spec})
        self.assertTrue(result["ok"], result.get("failure"))
        cubin, = result["cubins"]
        image = image_of(cubin, area)
        self.assertEqual(image[:4], b"\x7fELF")
        return cubin, image


class Choices(WithAnswers):
    TUNED = KERNEL.replace("\n@triton.jit", CONFIGS % "((128, 1, 2), (256, 2, 3), (256, 4, 1))")
    CALL = "kernel[lambda meta: (triton.cdiv(200, meta['BLOCK']),)](x, y, 200{})"

    def test_a_plain_launch_has_one(self):
        (launch,), answer, _ = self.launches(model(self.CALL.format(", BLOCK=64")), compile=True)
        self.assertEqual(launch["choices"], [{key: launch[key] for key in ("grid", "args", "num_warps", "num_stages",
                                                                          "cubin", "spec")}])
        cubin = answer["cubins"][0]
        self.assertEqual((cubin["cluster_dims"], cubin["profile_scratch"], cubin["cooperative"],
                          cubin["dependent_launch"], cubin["descriptors"]), ([1, 1, 1], 0, False, False, []))

    def test_an_autotuned_launch_has_every_configuration(self):
        for compile in (False, True):
            (launch,), answer, _ = self.launches(model(self.CALL.format(""), self.TUNED), compile)
            choices = launch["choices"]
            self.assertEqual([(c["grid"], c["num_warps"], c["num_stages"], dict(c["args"])["BLOCK"]) for c in choices],
                             [([2, 1, 1], 1, 2, {"i": 128}), ([1, 1, 1], 2, 3, {"i": 256}),
                              ([1, 1, 1], 4, 1, {"i": 256})])
            self.assertTrue(all(launch[key] == value for key, value in choices[0].items()))
            self.assertEqual([c["cubin"] for c in choices], [0, 1, 2] if compile else [None] * 3)
            self.assertEqual([c.get("spec") for c in choices], [None] * 3 if compile else [0, 1, 2])
            self.assertEqual(len(answer["specs"]), 0 if compile else 3)

    def test_later_launches_name_their_own_tensors(self):
        launches, _, _ = self.launches(model(self.CALL.format("") + "; z = torch.empty_like(x); x = z; " +
                                             self.CALL.format(""), self.TUNED))
        first, second = (dict(launch["choices"][2]["args"])["x_ptr"] for launch in launches)
        self.assertNotEqual(first, second)

    def test_configurations_that_do_not_compile_are_left_out(self):
        kernel = self.TUNED.replace("(128, 1, 2)", "(100, 1, 2)")
        (launch,), _, _ = self.launches(model(self.CALL.format(""), kernel), compile=True)
        self.assertEqual([dict(c["args"])["BLOCK"]["i"] for c in launch["choices"]], [256, 256])
        answer, _ = record(model(self.CALL.format(""), self.TUNED.replace("128", "100").replace("256", "96")), True)
        self.assertEqual(answer["failure"]["outcome"], "compile_error")

    def test_hooks_of_the_tuner(self):
        kernel = self.TUNED.replace("key=['n']", "key=['n'], reset_to_zero=['y_ptr'], prune_configs_by="
                                    "{'early_config_prune': lambda configs, named_args, **kwargs: configs[1:]}")
        (launch,), answer, _ = self.launches(model(self.CALL.format(""), kernel))
        self.assertEqual(len(launch["choices"]), 2)
        tape = answer["cases"][0]["trace"]["tape"]
        self.assertEqual([step.get("op") for step in tape], ["aten.empty_like.default", "aten.zero_.default", None])

    def test_at_most_sixteen(self):
        kernel = KERNEL.replace("\n@triton.jit", CONFIGS % "[(16 << i, w, 1) for i in range(8) for w in (1, 2, 4)]")
        (launch,), _, _ = self.launches(model(self.CALL.format(""), kernel))
        self.assertEqual(len(launch["choices"]), 16)

    def test_clusters(self):
        (launch,), answer, _ = self.launches(model(self.CALL.format(", BLOCK=256, num_ctas=2")), compile=True)
        self.assertEqual(answer["cubins"][0]["cluster_dims"], [2, 1, 1])


class Descriptors(WithAnswers):
    KERNEL = """
@triton.jit
def kernel(x, y, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK
    y.store([row, 0], x.load([row, 0]) * 2.0)
"""
    FORWARD = """kernel[(2,)](TensorDescriptor.from_tensor(x, [16, 32]),
                     TensorDescriptor(y, y.shape, y.stride(), [16, 32], "nan"), BLOCK=16)"""

    def test_host_descriptors(self):
        (launch,), answer, _ = self.launches(model(self.FORWARD, self.KERNEL), shape=(32, 32))
        x, y, block = (arg for _, arg in launch["args"])
        self.assertEqual(x, {"desc": {"t": 0, "shape": [32, 32], "strides": [32, 1], "block_shape": [16, 32],
                                      "padding": "zero"}})
        self.assertEqual((y["desc"]["t"], y["desc"]["padding"], block), (1, "nan", {"i": 16}))
        cubin, _ = self.compiled(answer, answer["specs"][0])
        self.assertEqual(len(cubin["descriptors"]), 2)
        self.assertTrue(cubin["signature"].startswith("tensordesc<fp32[16, 32]"))


class Compiling(WithAnswers):
    CALL = "kernel[(4,)](x, y, 200, BLOCK=64)"

    def test_text_and_spec_make_the_same_cubin_as_the_candidate(self):
        _, answer, _ = self.launches(model(self.CALL))
        self.assertEqual(answer["cases"][0]["seconds"]["compile"], 0)
        spec, = answer["specs"]
        self.assertEqual(spec["signature"], {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"})
        self.assertEqual(spec["constants"], {"BLOCK": {"i": 64}})
        self.assertEqual(spec["attrs"], {"x_ptr": [["tt.divisibility", 16]], "y_ptr": [["tt.divisibility", 16]]})
        self.assertEqual(spec["options"], {"num_warps": 4, "num_stages": 3, "num_ctas": 1, "maxnreg": None})
        built, image = self.compiled(answer, spec)
        _, answer, area = self.launches(model(self.CALL), compile=True)
        own, = answer["cubins"]
        self.assertEqual(image, image_of(own, area))
        self.assertEqual({**own, "tensor": None}, {**built, "tensor": None})

    def test_specialisation_is_in_the_spec(self):
        _, answer, _ = self.launches(model("kernel[(4,)](x[1:], y, 1, BLOCK=64); kernel[(4,)](x, y, 96, BLOCK=64)"))
        odd, aligned = answer["specs"]
        self.assertEqual((odd["signature"]["n"], odd["constants"]["n"], list(odd["attrs"])),
                         ("constexpr", {"i": 1}, ["y_ptr"]))
        self.assertEqual(list(aligned["attrs"]), ["x_ptr", "y_ptr", "n"])
        self.compiled(answer, odd)

    def test_the_key_is_of_text_not_of_place(self):
        keys = []
        for source in (model(self.CALL), model(self.CALL).replace("class ModelNew", "\n\nclass ModelNew"),
                       model(self.CALL).replace("LIMIT = tl", "# A comment.\nLIMIT = tl"),
                       model(self.CALL, "\n@triton.jit\ndef other(x):\n    return x\n" + KERNEL),
                       model(self.CALL).replace("4.0", "5.0"), model(self.CALL).replace("x * 2.0", "x * 3.0")):
            keys.append(self.launches(source)[1]["specs"][0]["key"])
        self.assertEqual(len(set(keys[:4])), 1)
        self.assertEqual(len(set(keys)), 3)

    def test_functions_and_types_as_constants(self):
        kernel = """
@triton.jit
def kernel(x_ptr, y_ptr, n, op: tl.constexpr, kind: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, op(tl.load(x_ptr + offsets).to(kind)).to(tl.float32))
"""
        _, answer, _ = self.launches(model("kernel[(1,)](x, y, 5, helper, tl.float16, BLOCK=64)", kernel))
        self.assertEqual(answer["specs"][0]["constants"]["kind"], {"dtype": "tl.float16"})
        self.compiled(answer, answer["specs"][0])

    def test_errors_name_the_line_of_the_candidate(self):
        for change in (("tl.arange(0, BLOCK)", "tl.arange(0, 3 * BLOCK)"), ("x * 2.0", "tl.dot(x, x)")):
            source = model(self.CALL).replace(*change)
            _, answer, _ = self.launches(source)
            result, _ = run("compile", {"kernels": answer["kernels"], "spec": answer["specs"][0]})
            self.assertEqual((result["failure"]["outcome"], result["failure"]["phase"]), ("compile_error", "compile"))
            line = next(i for i, text in enumerate(source.splitlines(), 1) if change[1] in text)
            self.assertEqual(result["failure"]["line"], line)
            self.assertIn(result["failure"]["kernel"], ("kernel", "helper"))
            self.assertNotIn("/", result["failure"]["message"].replace("'", ""))

    def test_too_much_shared_memory(self):
        kernel = """
@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for k in range(0, n, BLOCK):
        a = tl.load(x_ptr + i[:, None] * n + k + i[None, :])
        acc += tl.dot(a, tl.load(x_ptr + (k + i[:, None]) * n + i[None, :]))
    tl.store(y_ptr + i[:, None] * n + i[None, :], acc)
"""
        _, answer, _ = self.launches(model("kernel[(1,)](x, y, 512, BLOCK=128, num_warps=8, num_stages=4)", kernel),
                                     shape=(512, 512))
        result, _ = run("compile", {"kernels": answer["kernels"], "spec": answer["specs"][0]})
        self.assertEqual(result["failure"]["outcome"], "compile_error")
        self.assertIn("out of resource", result["failure"]["message"])

    def test_what_the_compiler_does_to_the_operands_of_products(self):
        kernel = """
@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = i[:, None] * n + i[None, :]
    a = tl.load(x_ptr + at)
    tl.store(y_ptr + at, %s)
"""
        for work, expected in (("a * 2", "none"), ("tl.dot(a, a, input_precision='ieee')", "exact"), ("tl.dot(a, a)", "tf32"),
                               ("tl.dot(a, a, input_precision='tf32x3')", "rounded"),
                               ("tl.dot(a.to(tl.float16), a.to(tl.float16))", "rounded"),
                               ("tl.dot(a, a) + tl.dot(a.to(tl.bfloat16), a.to(tl.bfloat16))", "rounded"),
                               ("tl.dot(a, a) + tl.dot(a, a, input_precision='ieee')", "tf32"),
                               ("a * 2)  # tt.dot of float32, inputPrecision = tf32 (", "none")):
            _, answer, _ = self.launches(model("kernel[(1,)](x, y, 32, BLOCK=32)", kernel % work), shape=(32, 32))
            result, _ = run("compile", {"kernels": answer["kernels"], "spec": answer["specs"][0]})
            self.assertEqual(result.get("products"), expected, (work, result))

    def test_host_code_does_not_come_along(self):
        source = model(self.CALL).replace("x_ptr, y_ptr, n, BLOCK", "x_ptr, y_ptr, n: print('host'), BLOCK")
        _, answer, _ = self.launches(source)
        result, _ = run("compile", {"kernels": answer["kernels"], "spec": answer["specs"][0]})
        self.assertTrue(result["ok"])
        answer["kernels"][answer["specs"][0]["kernel"]]["source"] += "\nimport os\n"
        result, _ = run("compile", {"kernels": answer["kernels"], "spec": answer["specs"][0]})
        self.assertEqual(result["failure"]["outcome"], "compile_error")

    def test_unusual_options(self):
        _, answer, _ = self.launches(model("kernel[(4,)](x, y, 200, BLOCK=64, maxnreg=64, enable_fp_fusion=False)"))
        self.assertEqual(answer["specs"][0]["options"]["enable_fp_fusion"], False)
        self.compiled(answer, answer["specs"][0])
        answer, _ = record(model("kernel[(4,)](x, y, 200, BLOCK=64, ptx_options='--verbose')"))
        self.assertEqual(answer["failure"]["outcome"], "unsupported")


class AskingForResults(WithAnswers):
    def test_registers_and_shared_memory_decide_a_grid(self):
        forward = """compiled = kernel.warmup(x, y, 200, BLOCK=64, grid=(1,))
        compiled._init_handles()
        programs = 65536 // (compiled.n_regs * 32 * 4) + compiled.metadata.shared + ("ptx" in compiled.asm)
        compiled[(programs, 1, 1)](x, y, 200, 64)"""
        grids = []
        for compile in (False, True):
            (launch,), answer, _ = self.launches(model(forward), compile)
            self.assertGreater(answer["cases"][0]["seconds"]["compile"], 0)
            grids.append(launch["grid"][0])
            if not compile:
                self.assertEqual(launch["spec"], 0)
        self.assertGreater(grids[0], 8)
        self.assertEqual(*grids)


if __name__ == "__main__":
    unittest.main()
