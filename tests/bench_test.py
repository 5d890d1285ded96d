# SPDX-License-Identifier: Apache-2.0
# Scripts of bench/ without a GPU: their arithmetic, files and tables, and how they treat the processes they start.
import argparse
import contextlib
import io
import json
import math
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import kernelbench_harness
import torch_compile

# Stands in for KernelBench: what it says of a candidate stands in the candidate's first line.
FAKE_EVAL = '''
import json, os, time
class KernelExecResult:
    def __init__(self, **values):
        self.compiled, self.correctness, self.metadata, self.runtime, self.ref_runtime = False, False, {}, -1.0, -1.0
        self.__dict__.update(values)
def eval_kernel_against_ref(original_model_src, custom_model_src, measure_performance, num_correct_trials, num_perf_trials, backend,
                            precision, **others):
    assert (num_correct_trials, num_perf_trials, backend, precision) == (5, 100, "triton", "float32")
    assert original_model_src == "the task"
    word = custom_model_src.split()[1]
    if word == "hangs":
        time.sleep(60)
    if word == "dies":
        os._exit(7)
    if word == "raises":
        raise RuntimeError("CUDA error: an illegal address")
    if word == "nothing":
        return None
    if word == "broken":
        return KernelExecResult(metadata={"compilation_error": "no such name"})
    if word == "wrong":
        return KernelExecResult(compiled=True, metadata={"correctness_issue": "Output mismatch", "max_difference": ["0.5", "2.0"]})
    if word == "flaky":
        return KernelExecResult(compiled=True, correctness=not measure_performance, metadata={"correctness_issue": "Output mismatch"})
    result = KernelExecResult(compiled=True, correctness=True)
    if measure_performance:
        result.runtime, result.ref_runtime = 2.0, {"fast": 3.0, "slow": 1.0}[word]
    return result
'''
FAKE_TORCH = "float32 = 'float32'\ndef device(name):\n    return name\n"


def answer(task, sample, outcome, word, level=1, turn=1):
    stages = [{"stage": "extract", "seconds": 0, "outcome": outcome}]
    if outcome != "pass":
        stages[0]["finding"] = {"rule": "values_differ"}
    return {"task_id": task, "level": level, "sample_index": sample, "turn": turn, "text": "...",
            "verdict": {"outcome": outcome, "stages": stages, "code": f"# {word}" if word else ""}}


class Harness(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.at = pathlib.Path(self.folder.name)
        package = self.at / "kb/src/kernelbench"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
        (package / "eval.py").write_text(FAKE_EVAL)
        (package.parent / "torch.py").write_text(FAKE_TORCH)
        self.tasks = [{"id": name, "level": 1, "source": "the task"} for name in "abcdefghij"]

    def judged(self, answers, per_task=1, times=True, timeout=20):
        options = types.SimpleNamespace(kernelbench=str(self.at / "kb"), jobs=3, timeout=timeout, times=times)
        rows, jobs = [], kernelbench_harness.chosen(answers, self.tasks, per_task)
        kernelbench_harness.judge_all(jobs, options, lambda job, theirs: rows.append(kernelbench_harness.row_of(job, theirs)))
        return {row["id"]: row for row in rows}

    def table(self, rows):
        lines = []
        kernelbench_harness.show(list(rows), out=lines.append)
        return "\n".join(lines)

    def test_every_end_of_a_candidate_is_a_value(self):
        words = {"a": "fast", "b": "slow", "c": "wrong", "d": "broken", "e": "raises", "f": "dies", "g": "hangs", "h": "nothing",
                 "i": "", "j": "flaky"}
        rows = self.judged([answer(task, 0, "pass" if word else "no_code", word) for task, word in words.items()], timeout=4)
        theirs = {words[row["task"]]: row["theirs"] for row in rows.values()}
        self.assertEqual({word for word, row in theirs.items() if row["correct"]}, {"fast", "slow"})
        self.assertEqual(theirs["fast"]["ratio"], 1.5)
        self.assertEqual(theirs["slow"]["ratio"], 0.5)
        self.assertEqual(theirs["wrong"]["error"], "Output mismatch, by up to 2.0")
        self.assertEqual(theirs["broken"]["error"], "no such name")
        self.assertIn("illegal address", theirs["raises"]["error"])
        self.assertIn("exit code 7", theirs["dies"]["error"])
        self.assertEqual(theirs["hangs"]["error"], "timeout")
        self.assertEqual(theirs["nothing"]["error"], "no result")
        self.assertEqual(theirs[""]["error"], "the answer has no code")
        self.assertIn("passed once, then: Output mismatch", theirs["flaky"]["error"])

    def test_table_counts_and_names_each_disagreement(self):
        rows = self.judged([answer("a", 0, "pass", "fast"), answer("b", 0, "pass", "wrong"), answer("c", 0, "wrong_output", "slow"),
                            answer("d", 0, "wrong_output", "wrong"), answer("e", 0, "harness_fault", "fast", level=2)]).values()
        table = self.table(rows)
        self.assertIn("## Level 1: 4 answers to 4 tasks\n\n| ours | KernelBench passes | KernelBench fails |\n|---|---|---|\n"
                      "| pass | 1 | 1 |\n| fail | 1 | 1 |\n", table)
        self.assertIn("| fault | 1 | 0 |", table)
        self.assertIn("agree: 50.0 % (15-85), 2 of 4; correct by ours: 50.0 % (15-85), 2 of 4; by KernelBench: 50.0 % (15-85), 2 of 4", table)
        self.assertIn("fast_1 by KernelBench: 25.0 % (5-70), 1 of 4; geometric mean of their speedups 0.87x", table)
        self.assertIn("## Disagreements: 2", table)
        self.assertIn("| c#0 | wrong_output | values_differ | pass |  |", table)
        self.assertIn("| b#0 | pass |  | fail | Output mismatch, by up to 2.0 |", table)
        self.assertNotIn("| e#0 |", table)

    def test_without_times_nothing_is_fast(self):
        table = self.table(self.judged([answer("a", 0, "pass", "fast")], times=False).values())
        self.assertIn("fast_1 by KernelBench: not measured (1 of 1 correct answers have no time)", table)

    def test_first_samples_of_first_turns_are_taken(self):
        answers = [answer("a", 2, "pass", "x"), answer("a", 0, "pass", "x", turn=2), answer("a", 1, "pass", "x"), answer("b", 0, "pass", "x"),
                   answer("a", 0, "pass", "x")]
        ids = [job["id"] for job in kernelbench_harness.chosen(answers, self.tasks, 2)]
        self.assertEqual(ids, ["a#0", "a#1", "b#0"])
        with self.assertRaises(SystemExit):
            kernelbench_harness.chosen([answer("stranger", 0, "pass", "x")], self.tasks, 1)

    def test_stored_verdicts_are_shown_and_missing_gpus_said(self):
        answers, tasks, out = self.at / "answers.jsonl", self.at / "tasks.jsonl", self.at / "out.jsonl"
        answers.write_text(json.dumps(answer("a", 0, "pass", "fast")) + "\n")
        tasks.write_text(json.dumps(self.tasks[0]) + "\n")
        command = [sys.executable, str(ROOT / "bench/kernelbench_harness.py"), str(self.at / "kb"), str(answers), str(tasks), "--out", str(out)]
        import torch
        if not torch.cuda.is_available():
            without = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(without.returncode, 3, without.stderr)
            self.assertIn("no GPU", without.stderr)
        out.write_text(json.dumps(next(iter(self.judged([answer("a", 0, "pass", "fast")]).values()))) + "\n")
        again = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("| pass | 1 | 0 |", again.stdout)
        command[2] = str(self.at)
        out.unlink()
        self.assertEqual(subprocess.run(command, capture_output=True).returncode, 2)

    def test_wilson(self):
        low, high = kernelbench_harness.wilson(1, 6)
        self.assertAlmostEqual(low, 0.0301, 4)
        self.assertAlmostEqual(high, 0.5635, 4)


# Stands in for tritonrl: a candidate's verdict is its first line.
FAKE_TRITONRL = """#!/usr/bin/env python3
import json, sys
assert sys.argv[1:3] == ["verify", "--batch"] and sys.argv[4] == "--out" and sys.argv[6:] == ["--set", "a=b"], sys.argv
with open(sys.argv[3]) as jobs, open(sys.argv[5], "w") as out:
    for job in map(json.loads, jobs):
        assert set(job) == {"id", "task", "candidate"}
        outcome = job["candidate"]["code"].split()[1]
        if outcome == "lost":
            continue
        stages = [{"stage": "compile", "seconds": 0, "outcome": outcome, "message": "because of " + outcome}]
        out.write(json.dumps({"id": job["id"], "outcome": outcome, "stopped_at": "compile", "stages": stages}) + "\\n")
sys.exit(1)
"""


class WrittenKernels(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.program = self.folder / "tritonrl"
        self.program.write_text(FAKE_TRITONRL)
        self.program.chmod(0o755)

    def run_on(self, *pairs):
        """Pairs are (PyTorch's outcome, ours, known)."""
        rows = []
        for i, (pytorch, ours, known) in enumerate(pairs):
            row = {"id": f"c{i}", "task": {"code": "the task"}, "candidate": {"code": f"# {ours}"}, "pytorch": {"outcome": pytorch, "error": 0.5}}
            rows.append({**row, "known": known} if known else row)
        (self.folder / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return self.script()

    def script(self):
        return subprocess.run([sys.executable, ROOT / "bench/written_kernels.py", self.folder, "--program", self.program, "--", "--set", "a=b"],
                              capture_output=True, text=True, check=False)

    def test_agreement(self):
        done = self.run_on(("pass", "pass", None), ("wrong", "wrong_output", None), ("error", "compile_error", None), ("error", "unsupported", None),
                           ("timeout", "timeout", None))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("5 candidates, 4 judged", done.stdout)
        self.assertNotIn("PROBLEM", done.stdout)
        for kind in ("rejected: 0", "accepted: 0", "not judged: 0"):
            self.assertIn(kind, done.stdout)
        row = next(line for line in done.stdout.splitlines() if line.startswith("error"))
        self.assertEqual(row.split()[1:], ["0", "1", "0", "1", "0", "2"])  # pass, compile_error, timeout, unsupported, wrong_output, all

    def test_every_disagreement_is_shown_and_fails(self):
        known = {"ours": "rule_break", "why": "torch.matmul does the work"}
        done = self.run_on(("pass", "wrong_output", None), ("wrong", "pass", None), ("pass", "unsupported", None), ("pass", "rule_break", known),
                           ("pass", "lost", None))
        self.assertEqual(done.returncode, 1)
        self.assertIn("c0: pass (error 0.5) and wrong_output @compile; because of wrong_output", done.stdout)
        for line in ("rejected: 2", "accepted: 1", "not judged: 1", "known: torch.matmul does the work", "PROBLEM c0: rejected", "PROBLEM c1: accepted",
                     "PROBLEM c2: not judged", "PROBLEM c4: no verdict"):
            self.assertIn(line, done.stdout)
        self.assertNotIn("PROBLEM c3", done.stdout)

    def test_what_is_known_must_be_so(self):
        known = {"ours": "rule_break", "why": "torch.matmul does the work"}
        self.assertEqual(self.run_on(("pass", "rule_break", known)).returncode, 0)
        self.assertIn("where rule_break is known", self.run_on(("pass", "wrong_output", known)).stdout)
        self.assertIn("is named as a disagreement and is none", self.run_on(("pass", "pass", known)).stdout)

    def test_bad_files_say_where(self):
        for text in ("{", "[]", '{"id": "a", "pytorch": {"outcome": "pass"}}', '{"id": "a", "task": "t", "candidate": "c", "pytorch": {"outcome": "fine"}}'):
            (self.folder / "pairs.jsonl").write_text(text + "\n")
            done = self.script()
            self.assertEqual(done.returncode, 1)
            self.assertIn("pairs.jsonl:1: ", done.stderr)
            self.assertNotIn("Traceback", done.stderr)


class VerifierSteps(unittest.TestCase):
    def run_steps(self, *steps, path=None):
        with tempfile.TemporaryDirectory() as out:
            environment = {**os.environ, "OUT": out, **({"PATH": path} if path else {})}
            done = subprocess.run(["bash", ROOT / "dev/gpu.sh", "verifier", *steps], env=environment, capture_output=True, text=True, check=False)
            file = pathlib.Path(out) / "verifier.jsonl"
            return done, [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    @unittest.skipIf(shutil.which("nvidia-smi"), "there may be a GPU")
    def test_what_needs_a_gpu_is_skipped_and_says_so(self):
        done, rows = self.run_steps("timing", "storm")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([(row["step"], row["status"], row["said"]) for row in rows],
                         [("timing", "skipped", ["needs a GPU"]), ("storm", "skipped", ["needs a GPU"])])
        commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
        self.assertEqual({row["commit"].rstrip("+") for row in rows}, {commit})
        self.assertIn("storm: skipped after 0 s; needs a GPU", done.stdout)

    def test_a_step_that_fails_is_told(self):
        with tempfile.TemporaryDirectory() as folder:  # Without cmake nothing is built.
            for name in ("bash", "git", "python3", "head", "mkdir", "dirname", "cat", "tail", "rm", "find"):
                os.symlink(sys.executable if name == "python3" else shutil.which(name), pathlib.Path(folder) / name)
            done, rows = self.run_steps("cases", path=folder)
        self.assertEqual((done.returncode, [row["status"] for row in rows]), (1, ["failed"]))
        self.assertEqual(self.run_steps("nonsense")[0].returncode, 2)


class TorchCompile(unittest.TestCase):
    def test_student_quantiles(self):
        for df, value in ((5, 2.571), (10, 2.228), (24, 2.064), (48, 2.011)):
            self.assertAlmostEqual(torch_compile.student(df), value, delta=0.004)

    def test_intervals_hold_the_truth_about_as_often_as_they_say(self):
        rng, held = random.Random(5), 0
        for _ in range(400):
            drift = math.exp(rng.gauss(0, 0.3))  # What both sides of a pair share does not matter.
            pairs = [(3.0 * drift * math.exp(rng.gauss(0, 0.03)), 2.0 * drift * math.exp(rng.gauss(0, 0.03))) for _ in range(25)]
            ratio, low, high = torch_compile.ratio_of(pairs)
            self.assertTrue(low <= ratio <= high)
            held += low <= 1.5 <= high
        self.assertTrue(370 <= held <= 398, held)

    def test_a_hiccup_decides_nothing(self):
        pairs = [(2.0, 1.0)] * 24 + [(2.0, 400.0)]
        ratio, low, high = torch_compile.ratio_of([(a * (1 + 0.001 * (i % 3)), b) for i, (a, b) in enumerate(pairs)])
        self.assertAlmostEqual(ratio, 2.002, delta=0.002)
        self.assertLess(high / low, 1.01)

    def test_tasks_are_drawn_on_a_device_with_what_was_imported(self):
        import torch
        source = ("import torch\nimport torch.nn as nn\nN = 3\nclass Model(nn.Module):\n    def __init__(self, k, w):\n"
                  "        super().__init__()\n        self.k, self.w = k, w\n        self.drop = nn.Dropout(0.5)\n"
                  "    def forward(self, x):\n        return self.drop(x) * self.k + self.w\n"
                  "def get_inputs():\n    return [torch.rand(N, 4)]\ndef get_init_inputs():\n    return [2.0, torch.ones(4)]\n")
        model, inputs = torch_compile.load(source, "cpu")
        self.assertEqual(list(inputs[0].shape), [3, 4])
        self.assertTrue(torch.equal(model(*inputs), inputs[0] * 2 + 1), "in eval mode dropout does nothing")
        self.assertEqual(torch_compile.difference(torch.ones(4), torch.ones(4) * 1.5), 0.5)
        self.assertEqual(torch_compile.difference((torch.ones(2), torch.ones(2)), (torch.ones(2), torch.zeros(2))), 1.0)
        self.assertIsNone(torch_compile.difference(torch.ones(2), torch.ones(3)))

    def state_of(self, pid):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]

    def test_others_stand_still_while_one_is_timed(self):
        fleet = torch_compile.Fleet()
        children = [subprocess.Popen(["sleep", "60"], start_new_session=True) for _ in range(3)]
        for child in children:
            fleet.add(child)
        try:
            late = []
            def look():
                joining = threading.Thread(target=lambda: (fleet.add(children[0]), late.append("added")))
                joining.start()
                time.sleep(0.2)
                self.assertEqual(late, [], "nobody joins meanwhile")
                return [self.state_of(child.pid) for child in children]
            self.assertEqual(fleet.alone(children[1], look), ["T", "S", "T"])
            time.sleep(0.2)
            self.assertEqual([self.state_of(child.pid) for child in children], ["S", "S", "S"])
            self.assertEqual(late, ["added"])
            self.assertGreater(fleet.paused_s, 0.2)
        finally:
            for child in children:
                torch_compile.end(child)

    def run_fake(self, body, tasks, deadline=20):
        """run_all with a child that is this Python and `body` in place of the real one."""
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "child.py"
            script.write_text("import json, sys, time\ntask = json.loads(sys.stdin.readline())\n" + body)
            options = argparse.Namespace(mode="default", readings=25, warm_ups=1, half_width=0.02, most_s=1, no_tf32=False, cache=folder,
                                         deadline=deadline, jobs=2)
            named, torch_compile.__file__ = torch_compile.__file__, str(script)
            try:
                return torch_compile.run_all(tasks, options)
            finally:
                torch_compile.__file__ = named

    def test_errors_and_deadlines_are_values(self):
        body = ("if task['source'] == 'bad':\n    sys.exit('ValueError: no such thing')\n"
                "if task['source'] == 'slow':\n    time.sleep(60)\n"
                "print('a word', flush=True)\nprint('READY', flush=True)\nassert sys.stdin.readline() == 'go\\n'\n"
                "print('RESULT ' + json.dumps({'ratio': 2.0}), flush=True)\n")
        rows = self.run_fake(body, [{"id": word, "source": word} for word in ("good", "bad", "slow", "fine")], deadline=2)
        self.assertEqual(rows["good"], {"source": torch_compile.source_hash("good"), "ratio": 2.0})
        self.assertEqual(rows["fine"]["ratio"], 2.0)
        self.assertEqual(rows["bad"]["error"], "ValueError: no such thing")
        self.assertEqual(rows["slow"]["error"], "deadline passed while compiling")

    def test_without_a_gpu_it_says_so(self):
        import torch
        if torch.cuda.is_available():
            self.skipTest("there is one")
        said = io.StringIO()
        with contextlib.redirect_stderr(said), self.assertRaises(SystemExit) as end:
            torch_compile.machine(types.SimpleNamespace(mode="default", no_tf32=False))
        self.assertEqual(end.exception.code, 3)
        self.assertIn("no GPU", said.getvalue())


if __name__ == "__main__":
    unittest.main()
