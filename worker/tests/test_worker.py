# SPDX-License-Identifier: Apache-2.0
# Drives real fork servers: every case file that is harmless without a jail, then what a trace must hold.
#
# The cases under cheat/ are left to the verifier's own tests, which never run without the sandbox.
import glob
import os
import unittest

import torch
from harness import WORKER, pair, record_reference, tensors
from trace_format import pack
from truth import truth

CASES = os.path.join(os.path.dirname(WORKER), "tests", "cases")
# How the worker alone sees an outcome of the whole verifier.
# Wrong in further calls or with other configurations, which the verifier asks for; here is one call with the first one.
RIGHT_ONCE = ("accumulator_never_reset", "autotune_grid_of_one_config", "keeps_first_input", "reduce_of_a_recurrence",
              "running_count_not_kept")
SEEN_AS = {"pass": "pass", "wrong_output": "wrong_output", "not_finite": "wrong_output", "timeout": "deadline",
           "syntax_error": "compile_error"}

# What the judge decides by its tolerance, by the weights it recognises, or in other runs: tests/cases_test.cpp.
ELSEWHERE = ("tf32", "layer_norm_stacked", "conv_norm_table", "two_norms_table", "reads_past_the_end")

HEAD = """
import torch
import torch.nn as nn
import triton
import triton.language as tl
"""
KERNEL = HEAD + """
@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2.0, mask=mask)
"""
TASK = """
import torch
import torch.nn as nn

N = 100
M = 2 * N

class Model(nn.Module):
    def forward(self, x):
        return x * 2

def get_inputs():
    return [torch.randn(M)]

def get_init_inputs():
    return []
"""


def model(forward, init=""):
    return KERNEL + f"""
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        {init or "pass"}

    def forward(self, x):
        {forward}
"""


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class WithForkServers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pair = pair()

    def record(self, candidate, task=TASK, **options):
        answer, area = truth(task, options.get("constants"))
        return self.pair.recorder.run("record", self.pair.record_args(task, candidate, answer, **options))


class CaseFiles(WithForkServers):
    def run_kind(self, kind):
        paths = sorted(glob.glob(os.path.join(CASES, kind, "*.py")))
        self.assertGreater(len(paths), 9)
        for path in paths:
            if any(part in path for part in ELSEWHERE):
                continue
            with self.subTest(os.path.basename(path)):
                candidate = read(path)
                head = [line.split(": ", 1)[1] for line in candidate.splitlines()[:3]]
                expected = head[1].split(" @")[0]
                deadline = 2.0 if expected == "timeout" else 60.0
                task = read(os.path.join(os.path.dirname(WORKER), head[0]))
                outcome, detail = self.pair.judge(task, candidate, deadline_s=deadline)
                once = os.path.splitext(os.path.basename(path))[0] in RIGHT_ONCE
                self.assertEqual(outcome, "pass" if once else SEEN_AS.get(expected, expected), detail)
                if "message" in detail:
                    self.assertNotIn(os.sep + "tmp", detail["message"])
                    self.assertNotIn("site-packages", detail["message"])

    def test_honest(self):
        self.run_kind("honest")

    def test_wrong(self):
        self.run_kind("wrong")

    def test_broken(self):
        self.run_kind("broken")


class Records(WithForkServers):
    def case_trace(self, candidate, **options):
        done, answer, _ = self.record(candidate, **options)
        self.assertTrue(answer and answer["ok"], (done, answer))
        return answer, answer["cases"][0]["trace"]

    def ops(self, candidate, **options):
        return [step.get("op", "launch") for step in self.case_trace(candidate, **options)[1]["tape"]]

    def test_library_calls_are_on_the_tape_whole(self):
        self.assertEqual(self.ops(model("return torch.nn.functional.softmax(x, dim=0)")), ["aten.softmax.int"])
        self.assertEqual(self.ops(model("return torch.compile(lambda t: t * 2)(x)")), ["aten.mul.Tensor"])

    def test_caught_compile_errors_leave_the_fallback_on_the_tape(self):
        ops = self.ops(model("""
        try:
            kernel[(1,)](x, x, 1, BLOCK=3)
        except Exception:
            pass
        return x * 2"""))
        self.assertEqual(ops, ["aten.mul.Tensor"])

    def test_a_swallowed_unsupported_still_counts(self):
        done, answer, _ = self.record(model("""
        try:
            big = bool(x.sum() > 0)
        except BaseException:
            big = True
        return x * 2"""))
        self.assertEqual(answer["failure"]["outcome"], "unsupported")

    def test_layout_composites_become_primitives(self):
        ops = self.ops(model("return x.reshape(10, 20).T.contiguous().flatten().to(torch.float16).cuda().float()"))
        self.assertEqual(ops, ["aten.view.default", "aten.permute.default", "aten.clone.default", "aten.view.default",
                               "aten._to_copy.default", "aten._to_copy.default"])

    def test_launch_holds_grid_arguments_and_line(self):
        candidate = model("y = torch.empty_like(x); "
                          "kernel[lambda meta: (meta['BLOCK'] // 8, 2)](x, y, 200, BLOCK=64); return y")
        answer, case_trace = self.case_trace(candidate)
        launch = next(step for step in case_trace["tape"] if "launch" in step)
        self.assertEqual(launch["grid"], [8, 2, 1])
        self.assertEqual([name for name, _ in launch["args"]], ["x_ptr", "y_ptr", "n", "BLOCK"])
        self.assertEqual(launch["args"][2:], [["n", {"i": 200}], ["BLOCK", {"i": 64}]])
        self.assertIn("kernel[lambda", candidate.splitlines()[launch["line"] - 1])
        self.assertEqual(answer["cubins"][launch["cubin"]]["signature"], "*fp32,*fp32,i32,constexpr")

    def test_cubins_are_elf_and_autotune_compiles_all(self):
        tuned = model("y = torch.empty_like(x); kernel[(2,)](x, y, 200); return y").replace(
            "@triton.jit", "@triton.autotune([triton.Config({'BLOCK': b}, num_warps=w) for b in (128, 256) "
                           "for w in (1, 2)], key=['n'])\n@triton.jit")
        answer, area = truth(TASK)
        _, trace, own = self.pair.recorder.run("record", self.pair.record_args(TASK, tuned, answer))
        self.assertEqual(len(trace["cubins"]), 4)
        for cubin in trace["cubins"]:
            image = tensors(cubin["tensor"], own).numpy().tobytes()
            self.assertEqual(image[:4], b"\x7fELF")
        tape = trace["cases"][0]["trace"]["tape"]
        self.assertEqual(sum("launch" in step for step in tape), 1)
        self.assertEqual(dict(next(s for s in tape if "launch" in s)["args"])["BLOCK"], {"i": 128})

    def test_without_compilation_there_are_no_cubins(self):
        answer, case_trace = self.case_trace(model("y = torch.empty_like(x); kernel[(2,)](x, y, 200, BLOCK=128); return y"),
                                 compile=False)
        self.assertEqual(answer["cubins"], [])
        self.assertIsNone(case_trace["tape"][-1]["cubin"])

    def test_size_constants_are_rebound_in_candidates_that_copy_them(self):
        candidate = "N = 100\nBLOCK = 100  # Another 100.\n" + model(
            "y = torch.empty(2 * N, device=x.device); kernel[(1,)](x, y, 2 * N, BLOCK=16); return y")
        answer, case_trace = self.case_trace(candidate, constants={"N": 3}, compile=False)
        self.assertEqual(case_trace["values"][0]["shape"], [6])
        self.assertEqual(case_trace["values"][1]["shape"], [6])
        outcome, detail = self.pair.judge(TASK, candidate, constants={"N": 3})
        self.assertEqual(outcome, "pass", detail)

    def test_tensors_made_from_numbers_become_parameters_with_bytes(self):
        answer, case_trace = self.case_trace(model("return x * torch.tensor([1.5, 2.5], device='cuda')[0]"))
        self.assertEqual([name for name, *_ in case_trace["parameters"]], ["constant:0"])
        self.assertEqual(answer["cases"][0]["parameters"][0]["shape"], [2])

    def test_module_attributes_that_are_no_parameters_are_values_of_init(self):
        candidate = model("y = torch.empty_like(x); kernel[(2,)](x + self.shift, y, 200, BLOCK=128); return y",
                          "self.shift = torch.zeros(200)")
        answer, case_trace = self.case_trace(candidate)
        self.assertEqual((case_trace["parameters"], answer["cases"][0]["init_steps"]), ([], 1))
        self.assertEqual(self.pair.judge(TASK, candidate)[0], "pass")

    def test_a_raw_pointer_names_its_tensor(self):
        candidate = model("y = torch.empty_like(x); kernel[(2,)](x.data_ptr(), y, 200, BLOCK=128); return y").replace(
            "tl.load(x_ptr +", "tl.load(x_ptr.to(tl.pointer_type(tl.float32)) +")
        answer, case_trace = self.case_trace(candidate)
        self.assertEqual(case_trace["tape"][-1]["args"][0][1], {"t": case_trace["inputs"][0]})
        self.assertIn("i64", answer["cubins"][0]["signature"])
        outcome, detail = self.pair.judge(TASK, candidate)
        self.assertEqual(outcome, "pass", detail)

    def test_two_cases_share_kernels(self):
        candidate = "N = 100\n" + model("y = torch.empty_like(x); kernel[(2,)](x, y, 2 * N, BLOCK=128); return y")
        answer, _ = truth(TASK)
        args = self.pair.record_args(TASK, candidate, answer)
        args["cases"].append({"name": "tiny", "constants": {"N": 4}, "compile": False,
                              "inputs": [{"shape": [8], "dtype": "float32", "stride": [1]}]})
        _, trace, _ = self.pair.recorder.run("record", args)
        self.assertEqual([case["name"] for case in trace["cases"]], ["full", "tiny"])
        self.assertEqual(len(trace["kernels"]), 1)
        self.assertEqual(len(trace["cubins"]), 1)


class Precision(WithForkServers):
    TASK = TASK.replace("return x * 2", "return x * 2 + 0 * self.shift").replace(
        "class Model(nn.Module):", "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.shift = nn.Parameter(torch.randn(200))\n")
    INIT = "self.shift = nn.Parameter(torch.randn(200))"
    BODY = "y = torch.empty_like(x); kernel[(2,)](x, y, 200, BLOCK=128); return y"

    def record(self, candidate, task=None, **case):
        task = task or self.TASK
        answer, area = truth(task, other=True)
        args = self.pair.record_args(task, candidate, answer)
        args["cases"][0].update(case)
        _, trace, own = self.pair.recorder.run("record", args)
        return answer, area, trace, own

    def test_a_kernel_that_follows_its_input_is_right_in_float16(self):
        answer, area, trace, own = self.record(model(self.BODY, self.INIT), dtype="float16")
        case = trace["cases"][0]
        self.assertEqual([(p["name"], p["dtype"]) for p in case["parameters"]], [("shift", "float16")])
        _, result, result_area = self.pair.interpret(trace, own, answer, area)
        self.assertTrue(result["ok"], result)
        self.assertTrue(torch.equal(tensors(result["outputs"], result_area), tensors(answer["outputs"], area)))

    def test_weights_under_other_names_are_cast_alike(self):
        answer, area, trace, own = self.record(model(self.BODY.replace("self.shift", "self.other"), self.INIT.replace("shift", "other")),
                                               dtype="float16")
        self.assertEqual([(p["name"], p["dtype"]) for p in trace["cases"][0]["parameters"]], [("other", "float16")])
        _, result, result_area = self.pair.interpret(trace, own, answer, area)
        self.assertTrue(torch.equal(tensors(result["outputs"], result_area), tensors(answer["outputs"], area)))

    def test_references_are_recorded_in_the_other_precision(self):
        case = record_reference(self.TASK, dtype="other")[0]["cases"][0]
        value = {v["id"]: v for v in case["trace"]["values"]}
        self.assertEqual([value[i]["dtype"] for i in case["trace"]["inputs"]], ["float16"])
        self.assertEqual([value[i]["dtype"] for _, i, _ in case["trace"]["parameters"]], ["float16"])
        self.assertEqual(value[case["trace"]["outputs"]["id"]]["dtype"], "float16")

    def test_tasks_without_one_precision_have_no_other(self):
        for inputs in ("torch.randint(0, 9, (200,))", "torch.randn(200).double()", "torch.randn(200), torch.ones(2).half()"):
            answer, _ = record_reference(self.TASK.replace("[torch.randn(M)]", f"[{inputs}]"), dtype="other")
            self.assertEqual(answer["failure"]["rule"], "not_recordable", inputs)

    def test_additional_cases_may_fail_and_are_listed(self):
        candidate = model("assert x.dtype == torch.float32; " + self.BODY, self.INIT)
        answer, _ = truth(self.TASK)
        half, _ = truth(self.TASK, other=True)
        args = self.pair.record_args(self.TASK, candidate, answer)
        args["cases"] += self.pair.record_args(self.TASK, candidate, half)["cases"]
        args["cases"][1].update(name="precision", dtype="float16", additional=True)
        _, trace, _ = self.pair.recorder.run("record", args)
        self.assertEqual([case["name"] for case in trace["cases"]], ["full"])
        self.assertEqual([(f["case"], f["failure"]["outcome"]) for f in trace["failures"]],
                         [("precision", "runtime_error")])
        args["cases"][1]["additional"] = False
        _, trace, _ = self.pair.recorder.run("record", args)
        self.assertFalse(trace["ok"])


class Interpreting(WithForkServers):
    def test_too_many_programs_need_a_gpu(self):
        candidate = model("y = torch.empty_like(x); kernel[(200,)](x, y, 200, BLOCK=1); return y")
        answer, area = truth(TASK)
        _, trace, own = self.pair.recorder.run("record", self.pair.record_args(TASK, candidate, answer))
        _, result, _ = self.pair.interpret(trace, own, answer, area, max_programs=100)
        self.assertEqual(result["failure"]["outcome"], "unsupported")
        self.assertIn("GPU", result["failure"]["message"])

    def test_a_grid_too_large_for_64_bits_is_too_many_programs(self):
        candidate = model("y = torch.empty_like(x); kernel[(2,)](x, y, 200, BLOCK=128); return y")
        answer, area = truth(TASK)
        _, trace, own = self.pair.recorder.run("record", self.pair.record_args(TASK, candidate, answer))
        next(s for s in trace["cases"][0]["trace"]["tape"] if "launch" in s)["choices"][0]["grid"] = [(1 << 31) - 1, 65535, 65535]
        own = pack(trace, own)
        _, result, _ = self.pair.interpret(trace, own, answer, area)
        self.assertEqual(result["failure"]["outcome"], "unsupported")

    def test_broken_guards_are_named(self):
        candidate = model("y = torch.empty_like(x); kernel[(2,)](x, y, 205, BLOCK=128); return y")
        answer, area = truth(TASK)
        _, trace, own = self.pair.recorder.run("record", self.pair.record_args(TASK, candidate, answer))
        _, result, _ = self.pair.interpret(trace, own, answer, area)
        case_trace = trace["cases"][0]["trace"]
        storage = next(v["storage"] for v in case_trace["values"] if v["id"] == case_trace["outputs"]["id"])
        self.assertEqual(result["guards_broken"], [storage])


    def of_text(self, text, poison=7, **changes):
        """Outcome of interpreting TASK's trace with another text in place of the recorded kernel's."""
        candidate = model("y = torch.empty_like(x); kernel[(2,)](x, y, 200, BLOCK=128); return y")
        answer, area = truth(TASK)
        _, trace, own = self.pair.recorder.run("record", self.pair.record_args(TASK, candidate, answer))
        trace["kernels"][0].update(changes, source=text)
        own = pack(trace, own)
        _, result, result_area = self.pair.interpret(trace, own, answer, area, poison=poison)
        if not result["ok"]:
            return result["failure"]["outcome"]
        good = torch.equal(tensors(result["outputs"], result_area), tensors(answer["outputs"], area))
        return "pass" if good else "wrong_output"

    HEAD_OF = "def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):\n"
    BODY = """    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
"""
    STORE = "    tl.store(y_ptr + offsets, {}, mask=mask)\n"

    def test_rules_hold_for_texts_that_were_never_recorded(self):
        self.assertEqual(self.of_text(self.HEAD_OF + self.BODY + self.STORE.format("x * 2.0")), "pass")
        for body in ("    __import__('torch')\n", "    x_ptr.handle\n", "    tl.core\n",
                     "    '''\ndef kernel(x_ptr, y_ptr, n, BLOCK):\n    evil()\n#'''\n"):
            with self.subTest(body):
                text = self.HEAD_OF + body + self.BODY + self.STORE.format("x * 2.0")
                self.assertEqual(self.of_text(text), "rule_break")
        text = self.HEAD_OF + self.BODY + self.STORE.format("x * 2.0")
        for entry in ({"name": "knobs", "kind": "member", "path": "triton.language.core", "member": "knobs"},
                      {"name": "__builtins__", "kind": "value", "value": {"l": []}}):
            with self.subTest(entry["name"]):
                self.assertEqual(self.of_text(text.replace("BLOCK +", "BLOCK + knobs +") if "path" in entry else text,
                                              globals=[{"name": "tl", "kind": "module", "path": "triton.language"},
                                                       entry]), "rule_break")

    def test_programs_that_race_are_wrong(self):
        store = self.STORE.format("x * 2.0")
        reads_the_next = "    tl.device_print('', tl.load(y_ptr + offsets + BLOCK, mask=mask))\n" + store
        for body, poison, expected in (
                (reads_the_next, 5, "pass"),  # In order the next program has not been there yet.
                (reads_the_next, 6, "wrong_output"),
                (store + "    tl.store(y_ptr + 199, 1.0 * tl.program_id(0))\n", 5, "wrong_output"),
                (store + "    tl.store(y_ptr + 200, 1.0)\n", 5, "pass"),  # Beyond the data, and all agree.
                (store + "    tl.store(y_ptr + 200 + offsets * 0, x)\n", 5, "wrong_output"),
                (store + "    tl.atomic_add(y_ptr + 201, 1.0)\n", 5, "pass"),
                (store + "    tl.atomic_add(y_ptr + 201, 1.0, sem='relaxed')\n"
                         "    tl.load(y_ptr + 201)\n", 5, "wrong_output"),
                (store + "    tl.atomic_add(y_ptr + 0, 0.0)\n", 5, "wrong_output"),
                (store + "    p = (y_ptr + 201).to(tl.pointer_type(tl.int8))\n"
                         "    tl.store(p + 3, 1, mask=tl.program_id(0) == 0)\n"
                         "    tl.load(y_ptr + 201)\n", 5, "wrong_output")):
            with self.subTest(body, poison=poison):
                self.assertEqual(self.of_text(self.HEAD_OF + self.BODY + body, poison), expected)

    def test_what_a_compiler_would_do(self):
        for value in ("tl.where(((offsets < 0) and (offsets >= 0)), 0.0, x * 2.0)",
                      "tl.where(((offsets >= 0) or (offsets < 0)), x * 2.0, 0.0)",
                      "tl.where(not (offsets >= 0), 0.0, x * 2.0)",
                      "x * 2.0 + (float('nan') + tl.zeros_like(x)).to(tl.int32)",
                      "x * 2.0 + ((1e30 + tl.zeros_like(x)).to(tl.int32) - 2147483647)",
                      "x * tl.maximum(tl.zeros_like(x) + float('nan'), 2.0)",
                      "tl.where(tl.fma(x * 0 + 1.000244140625, x * 0 + 1.000244140625, -(x * 0 + 1.00048828125)) > 0,"
                      " x * 2.0, 0.0)",  # The square of 1 + 2^-12 is not rounded first.
                      "x * (2.0 if (n > 0 and BLOCK == 128 and True) else 1.0)"):
            with self.subTest(value):
                self.assertEqual(self.of_text(self.HEAD_OF + self.BODY + self.STORE.format(value)), "pass")


if __name__ == "__main__":
    unittest.main()
