# SPDX-License-Identifier: Apache-2.0
# Drives real zygotes: every case file that is harmless without a jail, then what a Plan must hold, then hostile
# children.
#
# The cases under cheat/ are left to the verifier's own tests, which never run without the sandbox.
import glob
import os
import time
import unittest

import torch
from harness import WORKER, Zygote, pair, parse_blob, record_reference, tensors
from plan_format import pack
from truth import truth

CASES = os.path.join(os.path.dirname(WORKER), "tests", "cases")
# How the worker alone sees an outcome of the whole verifier.
SEEN_AS = {"pass": "pass", "wrong_output": "wrong_output", "not_finite": "wrong_output", "timeout": "deadline",
           "syntax_error": "compile_error"}

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


class WithZygotes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pair = pair()

    def record(self, candidate, task=TASK, **options):
        answer, area = truth(task, options.get("constants"))
        return self.pair.recorder.run("record", self.pair.record_args(task, candidate, answer, **options))


class CaseFiles(WithZygotes):
    def run_kind(self, kind):
        paths = sorted(glob.glob(os.path.join(CASES, kind, "*.py")))
        self.assertGreater(len(paths), 9)
        for path in paths:
            with self.subTest(os.path.basename(path)):
                candidate = read(path)
                head = [line.split(": ", 1)[1] for line in candidate.splitlines()[:3]]
                expected = head[1].split(" @")[0]
                deadline = 2.0 if expected == "timeout" else 60.0
                task = read(os.path.join(os.path.dirname(WORKER), head[0]))
                outcome, detail = self.pair.judge(task, candidate, deadline_s=deadline)
                self.assertEqual(outcome, SEEN_AS.get(expected, expected), detail)
                if "message" in detail:
                    self.assertNotIn(os.sep + "tmp", detail["message"])
                    self.assertNotIn("site-packages", detail["message"])

    def test_honest(self):
        self.run_kind("honest")

    def test_wrong(self):
        self.run_kind("wrong")

    def test_broken(self):
        self.run_kind("broken")


class Recording(WithZygotes):
    def plan(self, candidate, **options):
        done, answer, _ = self.record(candidate, **options)
        self.assertTrue(answer and answer["ok"], (done, answer))
        return answer, answer["cases"][0]["plan"]

    def ops(self, candidate, **options):
        return [step.get("op", "launch") for step in self.plan(candidate, **options)[1]["tape"]]

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
        answer, plan = self.plan(candidate)
        launch = next(step for step in plan["tape"] if "launch" in step)
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
        _, recording, own = self.pair.recorder.run("record", self.pair.record_args(TASK, tuned, answer))
        self.assertEqual(len(recording["cubins"]), 4)
        for cubin in recording["cubins"]:
            image = tensors(cubin["tensor"], own).numpy().tobytes()
            self.assertEqual(image[:4], b"\x7fELF")
        tape = recording["cases"][0]["plan"]["tape"]
        self.assertEqual(sum("launch" in step for step in tape), 1)
        self.assertEqual(dict(next(s for s in tape if "launch" in s)["args"])["BLOCK"], {"i": 128})

    def test_without_compilation_there_are_no_cubins(self):
        answer, plan = self.plan(model("y = torch.empty_like(x); kernel[(2,)](x, y, 200, BLOCK=128); return y"),
                                 compile=False)
        self.assertEqual(answer["cubins"], [])
        self.assertIsNone(plan["tape"][-1]["cubin"])

    def test_size_constants_are_rebound_in_candidates_that_copy_them(self):
        candidate = "N = 100\nBLOCK = 100  # Another 100.\n" + model(
            "y = torch.empty(2 * N, device=x.device); kernel[(1,)](x, y, 2 * N, BLOCK=16); return y")
        answer, plan = self.plan(candidate, constants={"N": 3}, compile=False)
        self.assertEqual(plan["values"][0]["shape"], [6])
        self.assertEqual(plan["values"][1]["shape"], [6])
        outcome, detail = self.pair.judge(TASK, candidate, constants={"N": 3})
        self.assertEqual(outcome, "pass", detail)

    def test_tensors_made_from_numbers_become_parameters_with_bytes(self):
        answer, plan = self.plan(model("return x * torch.tensor([1.5, 2.5], device='cuda')[0]"))
        self.assertEqual([name for name, *_ in plan["parameters"]], ["constant.0"])
        self.assertEqual(answer["cases"][0]["parameters"][0]["shape"], [2])

    def test_module_attributes_that_are_no_parameters_make_init_real(self):
        candidate = model("y = torch.empty_like(x); kernel[(2,)](x + self.shift, y, 200, BLOCK=128); return y",
                          "self.shift = torch.zeros(200)")
        answer, plan = self.plan(candidate)
        self.assertIn("tensor", answer["cases"][0]["parameters"][0])
        self.assertEqual(self.pair.judge(TASK, candidate)[0], "pass")

    def test_a_raw_pointer_names_its_tensor(self):
        candidate = model("y = torch.empty_like(x); kernel[(2,)](x.data_ptr(), y, 200, BLOCK=128); return y").replace(
            "tl.load(x_ptr +", "tl.load(x_ptr.to(tl.pointer_type(tl.float32)) +")
        answer, plan = self.plan(candidate)
        self.assertEqual(plan["tape"][-1]["args"][0][1], {"t": plan["inputs"][0]})
        self.assertIn("i64", answer["cubins"][0]["signature"])
        outcome, detail = self.pair.judge(TASK, candidate)
        self.assertEqual(outcome, "pass", detail)

    def test_two_cases_share_kernels(self):
        candidate = "N = 100\n" + model("y = torch.empty_like(x); kernel[(2,)](x, y, 2 * N, BLOCK=128); return y")
        answer, _ = truth(TASK)
        args = self.pair.record_args(TASK, candidate, answer)
        args["cases"].append({"name": "tiny", "constants": {"N": 4}, "compile": False,
                              "inputs": [{"shape": [8], "dtype": "float32", "stride": [1]}]})
        _, recording, _ = self.pair.recorder.run("record", args)
        self.assertEqual([case["name"] for case in recording["cases"]], ["full", "tiny"])
        self.assertEqual(len(recording["kernels"]), 1)
        self.assertEqual(len(recording["cubins"]), 1)


class Precision(WithZygotes):
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
        _, recording, own = self.pair.recorder.run("record", args)
        return answer, area, recording, own

    def test_a_kernel_that_follows_its_input_is_right_in_float16(self):
        answer, area, recording, own = self.record(model(self.BODY, self.INIT), dtype="float16")
        case = recording["cases"][0]
        self.assertEqual([(p["name"], p["dtype"], p["matched"]) for p in case["parameters"]],
                         [("shift", "float16", True)])
        _, result, result_area = self.pair.interpret(recording, own, answer, area)
        self.assertTrue(result["ok"], result)
        self.assertTrue(torch.equal(tensors(result["outputs"], result_area), tensors(answer["outputs"], area)))

    def test_weights_of_a_real_init_are_cast_alike(self):
        init = self.INIT + "\n        self.k = torch.tensor([float(torch.ones(1))])"
        answer, _, recording, _ = self.record(model(self.BODY, init), dtype="float16")
        own = {p["name"]: p for p in recording["cases"][0]["parameters"]}
        self.assertEqual(own["shift"]["dtype"], "float16")
        self.assertEqual(own["shift"]["init_hash"], answer["parameters"][0]["init_hash"])

    def test_references_are_recorded_in_the_other_precision(self):
        case = record_reference(self.TASK, dtype="other")[0]["cases"][0]
        value = {v["id"]: v for v in case["plan"]["values"]}
        self.assertEqual([value[i]["dtype"] for i in case["plan"]["inputs"]], ["float16"])
        self.assertEqual([value[i]["dtype"] for _, i, _ in case["plan"]["parameters"]], ["float16"])
        self.assertEqual(value[case["plan"]["outputs"]["id"]]["dtype"], "float16")

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
        _, recording, _ = self.pair.recorder.run("record", args)
        self.assertEqual([case["name"] for case in recording["cases"]], ["full"])
        self.assertEqual([(f["case"], f["failure"]["outcome"]) for f in recording["failures"]],
                         [("precision", "runtime_error")])
        args["cases"][1]["additional"] = False
        _, recording, _ = self.pair.recorder.run("record", args)
        self.assertFalse(recording["ok"])


class Interpreting(WithZygotes):
    def test_too_many_programs_need_a_gpu(self):
        candidate = model("y = torch.empty_like(x); kernel[(200,)](x, y, 200, BLOCK=1); return y")
        answer, area = truth(TASK)
        _, recording, own = self.pair.recorder.run("record", self.pair.record_args(TASK, candidate, answer))
        _, result, _ = self.pair.interpret(recording, own, answer, area, max_programs=100)
        self.assertEqual(result["failure"]["outcome"], "unsupported")
        self.assertIn("GPU", result["failure"]["message"])

    def test_a_grid_too_large_for_64_bits_is_too_many_programs(self):
        candidate = model("y = torch.empty_like(x); kernel[(2,)](x, y, 200, BLOCK=128); return y")
        answer, area = truth(TASK)
        _, recording, own = self.pair.recorder.run("record", self.pair.record_args(TASK, candidate, answer))
        next(s for s in recording["cases"][0]["plan"]["tape"] if "launch" in s)["choices"][0]["grid"] = [(1 << 31) - 1, 65535, 65535]
        own = pack(recording, own)
        _, result, _ = self.pair.interpret(recording, own, answer, area)
        self.assertEqual(result["failure"]["outcome"], "unsupported")

    def test_broken_guards_are_named(self):
        candidate = model("y = torch.empty_like(x); kernel[(2,)](x, y, 205, BLOCK=128); return y")
        answer, area = truth(TASK)
        _, recording, own = self.pair.recorder.run("record", self.pair.record_args(TASK, candidate, answer))
        _, result, _ = self.pair.interpret(recording, own, answer, area)
        plan = recording["cases"][0]["plan"]
        storage = next(v["storage"] for v in plan["values"] if v["id"] == plan["outputs"]["id"])
        self.assertEqual(result["guards_broken"], [storage])


    def of_text(self, text, poison=7, **changes):
        """Outcome of interpreting TASK's Plan with another text in place of the recorded kernel's."""
        candidate = model("y = torch.empty_like(x); kernel[(2,)](x, y, 200, BLOCK=128); return y")
        answer, area = truth(TASK)
        _, recording, own = self.pair.recorder.run("record", self.pair.record_args(TASK, candidate, answer))
        recording["kernels"][0].update(changes, source=text)
        own = pack(recording, own)
        _, result, result_area = self.pair.interpret(recording, own, answer, area, poison=poison)
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
                (reads_the_next, 6, "pass"),  # In order the next program has not been there yet.
                (reads_the_next, 7, "wrong_output"),
                (store + "    tl.store(y_ptr + 199, 1.0 * tl.program_id(0))\n", 6, "wrong_output"),
                (store + "    tl.store(y_ptr + 200, 1.0)\n", 6, "pass"),  # Beyond the data, and all agree.
                (store + "    tl.store(y_ptr + 200 + offsets * 0, x)\n", 6, "wrong_output"),
                (store + "    tl.atomic_add(y_ptr + 201, 1.0)\n", 6, "pass"),
                (store + "    tl.atomic_add(y_ptr + 201, 1.0, sem='relaxed')\n"
                         "    tl.load(y_ptr + 201)\n", 6, "wrong_output"),
                (store + "    tl.atomic_add(y_ptr + 0, 0.0)\n", 6, "wrong_output"),
                (store + "    p = (y_ptr + 201).to(tl.pointer_type(tl.int8))\n"
                         "    tl.store(p + 3, 1, mask=tl.program_id(0) == 0)\n"
                         "    tl.load(y_ptr + 201)\n", 6, "wrong_output")):
            with self.subTest(body, poison=poison):
                self.assertEqual(self.of_text(self.HEAD_OF + self.BODY + body, poison), expected)

    def test_what_a_compiler_would_do(self):
        for value in ("tl.where(((offsets < 0) and (offsets >= 0)), 0.0, x * 2.0)",
                      "tl.where(((offsets >= 0) or (offsets < 0)), x * 2.0, 0.0)",
                      "tl.where(not (offsets >= 0), 0.0, x * 2.0)",
                      "x * 2.0 + (float('nan') + tl.zeros_like(x)).to(tl.int32)",
                      "x * 2.0 + ((1e30 + tl.zeros_like(x)).to(tl.int32) - 2147483647)",
                      "x * tl.maximum(tl.zeros_like(x) + float('nan'), 2.0)",
                      "x * (2.0 if (n > 0 and BLOCK == 128 and True) else 1.0)"):
            with self.subTest(value):
                self.assertEqual(self.of_text(self.HEAD_OF + self.BODY + self.STORE.format(value)), "pass")


class Hostile(WithZygotes):
    def setUp(self):
        self.answer, _ = truth(TASK)

    def send(self, source, **limits):
        started = time.monotonic()
        zygote = self.pair.recorder
        zygote.submit("record", self.pair.record_args(TASK, source, self.answer), **limits)
        done, payload = zygote.receive()
        done["waited"] = time.monotonic() - started
        return done, payload

    def tearDown(self):  # Whatever happened: the zygote works on.
        good = model("y = torch.empty_like(x); kernel[(2,)](x, y, 200, BLOCK=128); return y")
        self.assertTrue(self.record(good, compile=False)[1]["ok"])

    def test_infinite_loop(self):
        done, payload = self.send("while True: pass", deadline_s=1.0)
        self.assertEqual((done["status"], payload), ("deadline", b""))
        self.assertLess(done["waited"], 5)

    def test_exit(self):
        done, payload = self.send("import os; os._exit(0)")
        self.assertEqual((done["status"], done["code"], payload), ("exited", 0, b""))
        done, _ = self.send("import sys; sys.exit(3)")
        self.assertEqual((done["status"], done["code"]), ("exited", 0))  # A SystemExit is reported, not obeyed.
        done, _ = self.send("import os; os.abort()")
        self.assertEqual(done["status"], "signaled")  # The first process of a PID namespace cannot abort: it crashes.

    def test_floods(self):
        done, payload = self.send("while True: print('x' * 1000)", deadline_s=1.0)
        self.assertEqual((done["status"], payload), ("deadline", b""))
        done, _ = self.send("import os\nwhile True: os.write(2, b'spam ' * 1000)")
        self.assertEqual(done["status"], "overflow")
        self.assertLessEqual(len(done["stderr"]), 8192)

    WRITE = """
import os
for fd in range(3, 64):
    try:
        os.write(fd, b"\\xff\\x00 garbage " * {times})
    except OSError:
        pass
{rest}
"""

    def test_garbage_on_the_result_pipe(self):
        done, payload = self.send(self.WRITE.format(times=10, rest="os._exit(0)"))
        self.assertEqual(done["status"], "exited")
        self.assertTrue(payload.startswith(b"\xff"))
        self.assertEqual(parse_blob(payload), (None, b""))

    def test_huge_result(self):
        done, payload = self.send(self.WRITE.format(times=20 << 20, rest=""), max_result_bytes=1 << 20)
        self.assertEqual((done["status"], len(payload)), ("overflow", 1 << 20))

    def test_memory(self):
        done, payload = self.send("hoard = [bytearray(1 << 28) for _ in range(64)]", memory_bytes=1 << 30)
        self.assertEqual(parse_blob(payload)[0]["failure"]["outcome"], "out_of_memory")

    def test_children_of_a_child_die(self):
        def alive():
            count = 0
            for path in glob.glob("/proc/[0-9]*/cmdline"):
                try:
                    with open(path, "rb") as file:
                        count += file.read() == command_line
                except OSError:
                    pass
            return count

        with open(f"/proc/{self.pair.recorder.process.pid}/cmdline", "rb") as file:
            command_line = file.read()  # Forks keep it.
        before = alive()  # Broker and fork server.
        done, _ = self.send("""
import os, time
for _ in range(5):
    if os.fork() == 0:
        try:
            os.setsid()
        except PermissionError:
            pass
        time.sleep(100)
        os._exit(0)
os._exit(5)
""")
        self.assertEqual((done["status"], done["code"]), ("exited", 5))
        self.assertLess(done["waited"], 5)
        deadline = time.monotonic() + 5
        while alive() > before and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(alive(), before)

    @unittest.skipUnless(os.environ.get("TRITONRL_SANDBOX_LIBRARY"), "needs the sandbox")
    def test_fork_bomb(self):
        done, _ = self.send("import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass",
                            deadline_s=1.0)
        self.assertEqual(done["status"], "deadline")
        self.assertLess(done["waited"], 8)

    SPY = """
table = bytes((c + 1) % 256 for c in range(256))
needle = bytes(reversed({needle!r}))  # Translated: as it is, it shall not be in this process.
found = 0
with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
    for line in maps.read().splitlines():
        span, mode = line.split()[:2]
        at, end = (int(part, 16) for part in span.split("-"))
        while mode.startswith("rw") and at < end:
            memory.seek(at)
            try:
                data = memory.read(min(end - at, 1 << 22))
            except OSError:
                break
            found += data.translate(table).count(needle)
            at += max(1, len(data))
raise RuntimeError(f"found {{found}}")
"""

    def test_a_child_holds_nothing_of_other_jobs(self):
        marker = b"the-secret-of-another-job"
        translated = bytes(c + 1 for c in marker)
        zygote = self.pair.recorder
        busy = self.WRITE.format(times=f"1 + {marker!r} * 100", rest="import time; time.sleep(3)")
        for _ in range(3):
            zygote.submit("record", self.pair.record_args(TASK, busy, self.answer))
        time.sleep(0.7)
        source = self.SPY.format(needle=translated[::-1])
        spy = zygote.submit("record", self.pair.record_args(TASK, source, self.answer))
        answers = {}
        while len(answers) < 4:
            done, payload = zygote.receive()
            answers[done["id"]] = payload
        self.assertIn("found 0", parse_blob(answers[spy])[0]["failure"]["message"])

    def test_jobs_overlap_and_can_be_killed(self):
        zygote = self.pair.recorder
        started = time.monotonic()
        args = self.pair.record_args(TASK, "import time; time.sleep(1)", self.answer)
        ids = {zygote.submit("record", args) for _ in range(3)}
        victim = zygote.submit("record", self.pair.record_args(TASK, "import time; time.sleep(60)", self.answer))
        zygote.send({"type": "kill", "id": victim})
        done = [zygote.receive()[0] for _ in range(4)]
        self.assertLess(time.monotonic() - started, 2.9)
        self.assertEqual({d["id"]: d["status"] for d in done if d["id"] == victim}, {victim: "killed"})
        self.assertEqual({d["id"] for d in done}, ids | {victim})


class Life(unittest.TestCase):
    def test_zygote_ends_with_its_socket_and_takes_its_jobs_along(self):
        zygote = Zygote("record")
        zygote.submit("record", {"reference": True, "task_source": "while True: pass", "weight_seed": 0,
                                 "cases": [{"name": "full"}]}, deadline_s=60)
        time.sleep(0.3)
        zygote.close()
        self.assertEqual(zygote.process.returncode, 0)


if __name__ == "__main__":
    unittest.main()
