# SPDX-License-Identifier: Apache-2.0
"""Candidates for the benchmark of the verifier, from bench/candidates: make_verifier_stream.py TASKS OUT [--stream N] [--seed S].

TASKS is KernelBench as JSON lines (level, problem_id, name, code) or its folder of level1/, level2/. Written into OUT:
  correct.jobs.jsonl     every candidate of bench/candidates as it is
  mixed.jobs.jsonl       N answers as models give them: three quarters fail before their kernels run
  candidates.jsonl       both, for the other harness: id, set, kind, task (source), code (null where the answer has none)
Jobs are lines for `tritonrl verify --batch`. The same arguments give the same files; no text occurs twice.
"""
import argparse
import collections
import json
import pathlib
import random
import re

INTRODUCTIONS = ("Here is a Triton implementation of the module:", "I fuse the operation into Triton kernels.",
                 "Below is the optimized `ModelNew`.", "Each program handles one block of the output.")
# Shares of the mixed stream. Up to `host` nothing runs.
KINDS = {"no_code": 0.06, "syntax": 0.13, "no_model": 0.08, "import": 0.12, "init": 0.06, "kernel": 0.20, "host": 0.10,
         "wrong_value": 0.09, "wrong_shape": 0.035, "correct": 0.125}


def read_tasks(path):
    path = pathlib.Path(path)
    if path.is_dir():
        found = {}
        for file in path.glob("level*/*.py"):
            found[int(file.parent.name[5:]), int(file.name.split("_")[0])] = file.read_text()
        return found
    rows = (json.loads(line) for line in path.read_text().splitlines())
    return {(row["level"], row["problem_id"]): row["code"] for row in rows}


def read_solutions(tasks):
    """[((level, problem), code without its head, task)]."""
    found = []
    for file in pathlib.Path(__file__).parent.glob("candidates/level*/*.py"):
        text = file.read_text()
        level, problem = map(int, re.search(r"KernelBench level (\d+), task (\d+)", text).groups())
        found.append(((level, problem), text[text.index("import torch"):], tasks[level, problem]))
    return sorted(found)


# --- Mistakes. Each takes (code, random stream) and gives the code with a mistake in it, or None where it cannot be made.

def replace(old, new):
    """In one place."""
    def mistake(code, rng):
        places = [found.start() for found in re.finditer(re.escape(old), code)]
        if not places:
            return None
        at = rng.choice(places)
        return code[:at] + new + code[at + len(old):]
    return mistake


def replace_all(old, new):
    return lambda code, rng: code.replace(old, new) if old in code else None


def substitute(pattern, new):
    def mistake(code, rng):
        changed = re.sub(pattern, new, code, count=1, flags=re.M)
        return changed if changed != code else None
    return mistake


def parses(code):
    try:
        compile(code, "candidate", "exec")
    except SyntaxError:
        return False
    return True


def unparsable(mistake):
    def checked(code, rng):
        for _ in range(20):
            changed = mistake(code, rng)
            if changed and not parses(changed):
                return changed
        return None
    return checked


def drop_character(character):
    def mistake(code, rng):
        places = [i for i, c in enumerate(code) if c == character]
        at = rng.choice(places)
        return code[:at] + code[at + 1:]
    return unparsable(mistake)


def cut_off(code, rng):
    return code[:int(len(code) * rng.uniform(0.5, 0.97))] + "\n"


def prose_inside(code, rng):
    lines = code.split("\n")
    at = rng.randrange(5, len(lines))
    return "\n".join(lines[:at] + ["Each program computes one block, so the grid covers the output."] + lines[at:])


def indent_wrong(code, rng):
    lines = code.split("\n")
    inside = [i for i, line in enumerate(lines) if line.startswith("        ")]
    at = rng.choice(inside)
    lines[at] = lines[at][3:]
    return "\n".join(lines)


def without_class(code, rng):
    return code[:code.index("class ModelNew")] + "def kernel_function(x):\n    return torch.empty_like(x)\n"


def keep_last_block(code, rng):
    return None if "skinny" in code else replace("acc +=", "acc =")(code, rng)  # There, one block is all of it.


MISTAKES = {
    "syntax": [drop_character(")"), drop_character(":"), drop_character("("), unparsable(cut_off), unparsable(prose_inside),
               unparsable(indent_wrong), unparsable(replace("def ", "void ")), unparsable(replace(" = ", " := "))],
    "no_model": [replace("class ModelNew", "class Model"), replace("class ModelNew", "class TritonModel"),
                 replace("class ModelNew", "class ModelNewTriton"), without_class],
    "import": [replace("import triton.language as tl\n", ""), replace("import torch.nn as nn\n", ""),
               replace("import triton\n", ""), replace("import triton.language as tl", "import triton.ops as ops\nimport triton.language as tl"),
               replace("import triton.language as tl", "import triton.language as tl\nfrom triton.language import libdevice_math"),
               replace("@triton.jit", "@triton.jit(num_warps=4)"), replace("@triton.jit", "@tl.jit"),
               replace("class ModelNew(nn.Module)", "BLOCK_SIZE = DEFAULT_BLOCK_SIZE\n\n\nclass ModelNew(nn.Module)"),
               replace("class ModelNew(nn.Module)", "class ModelNew(nn.module)")],
    "init": [replace("super().__init__()", "super(Model, self).__init__()"),
             substitute(r"def __init__\(self", "def __init__(self, block_size"),
             substitute(r"super\(\).__init__\(\)", "super().__init__()\n        self.weight = self.make_weight()"),
             substitute(r"super\(\).__init__\(\)", "super().__init__()\n        self.block = config.block_size")],
    "kernel": [replace("tl.arange(0, BLOCK", "tl.arange(BLOCK"), replace("tl.maximum(", "tl.relu("), replace("tl.exp(", "tl.fast_exp("),
               replace("tl.sigmoid(", "tl.activation("), replace(", axis=0)", ", dim=0)"), replace("mask=", "masks="),
               replace("dtype=tl.float32", "dtype=torch.float32"), replace("tl.program_id(0)", "tl.program_id(3)"),
               replace("tl.program_id(0)", "tl.block_id(0)"), replace_all(": tl.constexpr", ""), replace("tl.erf(", "tl.math.erff("),
               replace("tl.dot(", "tl.matmul("), replace("tl.where(", "tl.select("), replace("tl.cumsum(", "tl.scan_sum("),
               replace("mask=mask", "mask=valid"), replace("tl.sqrt(", "tl.sqroot("), replace("tl.zeros((", "tl.zeros_like(("),
               replace("other=0.0)", "other=0.0, fill=0.0)"), replace("tl.store(", "tl.write("), replace("tl.load(", "tl.read("),
               substitute(r"BLOCK=\d+", "BLOCK=1000"), replace("BLOCK_K=16", "BLOCK_K=24"), replace("input_precision=", "precision=")],
    "host": [substitute(r"(\[[^\n]*\]\()(\w+), ", r"\1"), replace("triton.cdiv(", "triton.ceil_div("),
             replace(".contiguous()", ".contigous()"), substitute(r"def forward\(self, ", "def forward(self, scale, "),
             substitute(r"^        rows, cols = ", "        batch, rows, cols = "), replace("x.numel()", "x.shape[0] * x.shape[1] * x.shape[4]"),
             substitute(r"^        M, K = ", "        batch, M, K = "), replace("torch.empty_like(", "torch.empty_as("),
             replace("device=x.device", "device=x.devices"), replace("x.shape", "x.shapes"), replace("self.", "self.module."),
             substitute(r"BLOCK(_M)?=\d+", "BLOCK_SIZE=128"), replace("torch.empty((", "torch.empty_strided((")],
    "wrong_value": [replace("tl.maximum(x, 0.0)", "tl.maximum(x, 0.1)"), replace("tl.exp(-x)", "tl.exp(x)"), replace("tl.sigmoid(x)", "tl.sigmoid(x * 1.702)"),
                    replace("0.5 * ", "0.25 * "), replace("-1.0)", "0.0)"), replace("x * s", "x + s"), replace("x * negative_slope", "0.0 * x"),
                    keep_last_block, replace(" - log_sum", ""), replace("/ row_sum", "* row_sum"), replace("/ rms", "* rms"),
                    replace("/ norm", "* norm"), replace(" * weight + bias", " + bias"), replace("before +=", "before ="),
                    replace("before + tl.cumsum", "tl.cumsum"), replace("/ rows", "/ cols"), replace("tl.sum(acc, axis=0) / n", "tl.sum(acc, axis=0)"),
                    replace("1.0 - p * t", "1.0 + p * t"), replace("a * b", "a + b"), replace("/ divisor", "* divisor"),
                    replace("acc * multiplier", "acc + multiplier"), replace("acc * slope", "acc * 0.0"), replace("tl.maximum(acc, 0.0)", "acc"),
                    replace("/ features + eps", "+ eps"), replace("tl.maximum(best, x)", "tl.minimum(best, x)"),
                    replace("- row_max) / row_sum", ") / row_sum")],
    "wrong_shape": [substitute(r"^        return (y|C|out)$", r"        return \1.reshape(-1)"), substitute(r"^        return (y|C|out)$", r"        return \1.unsqueeze(0)"),
                    substitute(r"^        return (y|C|out)$", r"        return (\1, \1)")],
    "correct": [lambda code, rng: code, replace("num_warps=8", "num_warps=4"), replace_all("1024", "512"),
                replace_all("2048", "1024"), replace_all("BLOCK_K=16", "BLOCK_K=32")],
}


def rename_kernels(code, number):
    """Kernels of their own name, so that no compiler's cache knows them."""
    for name in re.findall(r"^def (\w+)\(", code, flags=re.M):
        code = re.sub(rf"\b{name}\b", f"{name}_{number}", code)
    return code


def answer(code, rng, closed=True):
    return f"{rng.choice(INTRODUCTIONS)}\n\n```python\n{code}" + ("```\n" if closed else "")


def with_mistake(kind, code, rng):
    """`code` with one mistake of this kind; None where none of them can be made."""
    for mistake in rng.sample(MISTAKES[kind], len(MISTAKES[kind])):
        changed = mistake(code, rng)
        if changed is not None and (kind == "correct" or changed != code) and parses(changed) == (kind != "syntax"):
            return changed
    return None


def mixed(solutions, total, rng):
    """(kind, key, code or None, answer, task) of each candidate."""
    counts = {kind: round(total * share) for kind, share in KINDS.items()}
    counts["kernel"] += total - sum(counts.values())
    number = 0
    for kind, count in counts.items():
        order = []
        for turn in range(count):
            if not order:
                order = rng.sample(solutions, len(solutions))
            key, code, task = order.pop()
            number += 1
            code = rename_kernels(code, number)
            if kind == "no_code":
                text = answer(cut_off(code, rng), rng, closed=False)
                if turn % 3 == 0:
                    text = f"To optimize task {key[1]} (variant {number}), fuse the operations into one kernel and tile over the output. " * 3
                yield kind, key, None, text, task
                continue
            changed = with_mistake(kind, code, rng)
            while changed is None:  # None of this kind fits: another solution.
                key, code, task = rng.choice(solutions)
                code = rename_kernels(code, number)
                changed = with_mistake(kind, code, rng)
            yield kind, key, changed, answer(changed, rng), task


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks")
    parser.add_argument("out")
    parser.add_argument("--stream", type=int, default=480, help="length of the mixed stream")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    solutions = read_solutions(read_tasks(arguments.tasks))
    rows = []
    for key, code, task in solutions:
        rows.append(("correct", "correct", key, code, answer(code, random.Random(0)), task))
    rows += [("mixed", *row) for row in sorted(mixed(solutions, arguments.stream, rng), key=lambda _: rng.random())]
    texts = [row[4] for row in rows]
    if len(set(texts)) != len(texts):
        raise SystemExit("a text occurs twice")
    out = pathlib.Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    with open(out / "candidates.jsonl", "w") as candidates, open(out / "mixed.jobs.jsonl", "w") as mixed_jobs, \
            open(out / "correct.jobs.jsonl", "w") as correct_jobs:
        for number, (which, kind, (level, problem), code, text, task) in enumerate(rows):
            name = f"{which}/{number}/{level}-{problem}"
            candidates.write(json.dumps({"id": name, "set": which, "kind": kind, "level": level, "problem": problem,
                                         "task": task, "code": code}) + "\n")
            jobs = mixed_jobs if which == "mixed" else correct_jobs
            jobs.write(json.dumps({"id": name, "task": {"code": task}, "candidate": {"text": text}}) + "\n")
    counts = collections.Counter(row[1] for row in rows if row[0] == "mixed")
    print(f"{len(solutions)} correct candidates; mixed stream of {sum(counts.values())}: "
          + ", ".join(f"{counts[kind]} {kind}" for kind in KINDS))


if __name__ == "__main__":
    main()
