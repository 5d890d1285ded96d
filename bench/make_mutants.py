# SPDX-License-Identifier: Apache-2.0
"""Correct Triton kernels with one fault each, for measuring what multi-input testing catches.

make_mutants.py make SYNTH OUT [--per-kind N] [--seed S] [--every K]
    SYNTH is what `tritonrl data synth --count 600 --out SYNTH` wrote; the other bases are the honest cases of tests/cases. Written into OUT:
      mutants.jsonl   a line for every base (kind "base") and mutant: id, kind, base, note (what was changed), task, code
      jobs.jsonl      the same as lines of `tritonrl verify --batch`
make_mutants.py settings OUT VERDICTS KNOWN [--names A,B] [--bases]
    For every mutant that VERDICTS (of jobs.jsonl) holds for correct: its task under other sizes, values and precision, as OUT/settings.jobs.jsonl with ids
    `<id>@<setting>`. KNOWN is where their verdicts go (--out of `verify`; it need not exist yet). Call it and `verify` in turn until there are 0 jobs left: a
    mutant that was revealed is not tried further, and where one was rejected its base is tried in the same setting, since that alone tells the fault from a
    setting that is unfair. What a setting reveals is killable; what none reveals needs a line in mutants_equivalent.txt.

The kinds of faults are the functions of mutant_kinds.py. A mutant's id is `<kind>/<base>`; a base's `base/<name>`, where the name may end in a view:
another version of the base's task in which a fault can hide, as it can in a task whose author likes round numbers:
  +pow2    every size is a power of two: no tails, no padding      +square  all sizes of a two-dimensional task are equal
  +rand    inputs from [0, 1) where they were normal: no negative numbers
The same arguments give the same files; the printed hash names the corpus. No text of candidates is run here: `tritonrl verify` alone does that.
"""
import argparse
import ast
import collections
import hashlib
import json
import pathlib
import random
import re

import mutant_kinds
import mutant_source

CASES = pathlib.Path(__file__).parent.parent / "tests" / "cases"
# Right for their task as written, and for nothing else: they have its sizes or dtype in their text. Or too slow, or about something else.
LEFT_OUT = {"generated_layer_norm_persistent", "generated_pointwise_async", "generated_softmax_loop", "layer_norm_module", "rms_norm_other_names", "mean_var_tuple",
            "half_row_sum_fp32_accumulator", "row_sum_atomics", "row_sum_last_arrival", "matmul_block_pointers", "matmul_split_k", "matmul_tma",
            "matmul_smaller_on_failure", "swish_device_print", "swish_every_construct", "row_sum_lock", "linear_relu_transposed_weight", "swish_other_scripts", "linear_small_bias_tf32",
            "linear_rms_norm_tf32", "matmul_tf32"}
VIEWS = {"mask_removed": ("", "+pow2"), "mask_off_by_one": ("", "+pow2"), "tail_missing": ("", "+pow2"), "initial_value": ("", "+pow2"),
         "block_assumption": ("", "+pow2"), "power_of_two": ("+pow2",), "mask_wrong_bound": ("", "+square"), "stride_wrong": ("", "+square"),
         "index_swap": ("", "+square"), "axis_wrong": ("", "+square"), "boundary_moved": ("", "+rand"), "value_range": ("", "+rand")}
POOL = 110  # Synthesised bases that are taken first; others only where these have no place for a fault.
LONGEST = 3500  # Characters of a solution: the rest compiles and interprets slowly.


def rebind(task, change):
    """The task with its module-level sizes changed: change(position, value) -> value, for values of 4 and more."""
    names = [name for name, value in sorted(mutant_source.task_sizes(task).items()) if value >= 4]
    for position, name in enumerate(names):
        task = re.sub(rf"^{name} = (\d+)$", lambda m: f"{name} = {change(position, int(m.group(1)))}", task, flags=re.M)
    return task


def nearest_power(value):
    below = 1 << (value.bit_length() - 1)
    return below if value - below <= 2 * below - value else 2 * below


def view_of(task, view):
    """The task in this view; None where there is none or it is the task itself."""
    changed = task
    if view == "+pow2":
        changed = rebind(task, lambda _, value: nearest_power(value))
    elif view == "+rand":
        head, tail = task.split("def get_inputs", 1)
        changed = head + "def get_inputs" + tail.replace("torch.randn(", "torch.rand(")
    elif view == "+square":
        shapes = mutant_source.input_shapes(task, mutant_source.task_sizes(task))
        sizes = [value for value in mutant_source.task_sizes(task).values() if value >= 4]
        if len(sizes) not in (2, 3) or not all(shape is not None and len(shape) <= 2 for shape in shapes):
            return None
        changed = rebind(task, lambda *_: 40)
    return None if view and changed == task else changed


def read_bases(synth):
    """[(name, task, solution)]."""
    bases = []
    for path in sorted((CASES / "honest").glob("*.py")):
        if path.stem in LEFT_OUT:
            continue
        head, text = re.match(r"((?:#[^\n]*\n)*)(.*)", path.read_text(), flags=re.S).groups()
        task = re.search(r"^# task: (.*)$", head, flags=re.M).group(1)
        bases.append((f"case/{path.stem}", (CASES.parent.parent / task).read_text(), text))
    for line in pathlib.Path(synth).read_text().splitlines():
        row = json.loads(line)
        if row.get("solution") and len(row["solution"]) <= LONGEST:
            bases.append((row["id"], row["source"], row["solution"]))
    return bases


def spoil(kind, name, task, solution, rng):
    """(note, code) of one fault of this kind, None where there is no place for it."""
    program = mutant_source.Program(solution, task)
    shapes = {}
    for edits, note in mutant_kinds.KINDS[kind](program):
        code = mutant_source.apply(solution, edits)
        try:
            changed = ast.dump(ast.parse(code)) != ast.dump(program.tree)
        except SyntaxError as error:
            raise AssertionError(f"{kind} of {name} does not parse: {note}") from error
        if changed:
            shapes.setdefault(code, note)
    if not shapes:
        return None
    code = rng.choice(sorted(shapes))
    return shapes[code], code


def make(arguments):
    bases = read_bases(arguments.synth)
    pool = set(random.Random(arguments.seed).sample([name for name, *_ in bases], min(POOL, len(bases))))
    pool |= {name for name, *_ in bases if name.startswith("case/")}
    rows, texts = {}, set()
    for kind in mutant_kinds.KINDS:
        rng = random.Random(f"{arguments.seed}/{kind}")
        views = VIEWS.get(kind, ("",))
        for view_number, view in enumerate(views):
            wanted = (arguments.per_kind + view_number) // len(views)
            order = sorted(bases, key=lambda base: (base[0] not in pool, rng.random()))
            for name, task, solution in order:
                if wanted == 0:
                    break
                changed = view_of(task, view)
                found = None if changed is None or f"{kind}/{name}" in rows else spoil(kind, name, changed, solution, rng)
                if found is None or (changed, found[1]) in texts:
                    continue
                wanted -= 1
                texts.add((changed, found[1]))
                base = f"base/{name}{view}"
                rows.setdefault(base, {"id": base, "kind": "base", "base": base, "note": "", "task": changed, "code": solution})
                row = {"id": f"{kind}/{name}{view}", "kind": kind, "base": base, "note": found[0], "task": changed, "code": found[1]}
                rows[row["id"]] = row
    whole = "".join(json.dumps(row) + "\n" for row in rows.values())
    rows = sampled(rows, arguments.every)
    write_jobs(arguments.out / "jobs.jsonl", rows.values())
    text = "".join(json.dumps(row) + "\n" for row in rows.values())
    (arguments.out / "mutants.jsonl").write_text(text)
    counts = collections.Counter(row["kind"] for row in rows.values())
    print(f"{len(rows) - counts['base']} mutants of {counts['base']} bases; corpus {hashlib.sha256(whole.encode()).hexdigest()[:16]}")
    print(", ".join(f"{counts[kind]} {kind}" for kind in mutant_kinds.KINDS))


def sampled(rows, every):
    """Every so many-th mutant of each kind, and the bases of all."""
    seen, out = collections.Counter(), {}
    for key, row in rows.items():
        if row["kind"] == "base" or seen[row["kind"]] % every == 0:
            out[key] = row
        seen[row["kind"]] += row["kind"] != "base"
    return out


def write_jobs(path, rows):
    with open(path, "w") as jobs:
        for row in rows:
            jobs.write(json.dumps({"id": row["id"], "task": {"code": row["task"]}, "candidate": {"text": f"```python\n{row['code']}\n```\n"}}) + "\n")


# --- Settings that may reveal a fault. Each: (task, code) -> (task, code).

def sizes(change):
    return lambda task, code: (rebind(task, change), code)


def values(expression):
    """Floating-point inputs x become `expression`."""
    text = f"\n\ndef get_inputs(drawn=get_inputs):\n    return [({expression}) if x.is_floating_point() else x for x in drawn()]\n"
    return lambda task, code: (task + text, code)


def precision(task, code):
    """Parameters and inputs of the other precision."""
    to = "float" if "float16" in task or ".half()" in task else "half"
    wrap = "\n\nclass {0}({0}):\n    def __init__(self, *arguments):\n        super().__init__(*arguments)\n        self.{1}()\n"
    task, _ = values(f"x.{to}()")(task, code)
    return task + wrap.format("Model", to), code + wrap.format("ModelNew", to)


def unrounded(task, code):
    """float32 instead of float16, with values that float16 cannot hold."""
    if "float16" not in task and ".half()" not in task:
        return task, code
    return values("0.9876543 * x")(*precision(task, code))


SETTINGS = {
    "larger": sizes(lambda _, value: value * 3 // 2), "uneven": sizes(lambda i, value: value * (5 + 2 * i) // 4 | 1),
    "smaller": sizes(lambda _, value: max(value * 2 // 3, 3)), "triple": sizes(lambda _, value: 3 * value + 1), "precision": precision, "unrounded": unrounded,
    "times2": values("2.0 * x"), "times100": values("100.0 * x"), "thousandth": values("0.001 * x"), "negated": values("-x"),
    "below": values("-x.abs() - 1.0"), "offset": values("x + 30.0"), "equal": values("torch.ones_like(x) * x.flatten()[:1]"),
    "zeros": values("0.0 * x"), "cubed": values("x * x * x * 10.0"), "sparse": values("x * (x > 0.5)"), "whole": values("(2.0 * x).round()"),
    "minute": values("1e-12 * x"), "steep": values("-100.0 * x"), "halves": values("0.5 * (4.0 * x).round()"),
    "long_first": sizes(lambda i, value: 9 * value + 2 if i == 0 else value), "long_second": sizes(lambda i, value: 9 * value + 2 if i == 1 else value),
}


def settings(arguments):
    rows = {row["id"]: row for row in map(json.loads, (arguments.out / "mutants.jsonl").read_text().splitlines())}
    alive = {v["id"] for v in map(json.loads, arguments.verdicts.read_text().splitlines()) if v["correct"]}
    known = {}
    if arguments.known.exists():
        known = {v["id"]: v["outcome"] for v in map(json.loads, arguments.known.read_text().splitlines())}
    names = arguments.names.split(",") if arguments.names else list(SETTINGS)
    open_jobs = {}
    for row in rows.values():
        if row["id"] not in alive or (row["kind"] == "base" and not arguments.bases):
            continue
        wanted = [(row, name) for name in names]
        if row["kind"] != "base":
            rejected = [name for name in SETTINGS if known.get(f"{row['id']}@{name}", "pass") not in ("pass", "harness_fault")]
            if any(known.get(f"{row['base']}@{name}") == "pass" for name in rejected):
                continue
            wanted += [(rows[row["base"]], name) for name in rejected]
        for program, name in wanted:
            task, code = SETTINGS[name](program["task"], program["code"])
            key = f"{program['id']}@{name}"
            if key not in known and (task, code) != (program["task"], program["code"]):
                open_jobs[key] = {"id": key, "task": task, "code": code}
    write_jobs(arguments.out / "settings.jobs.jsonl", open_jobs.values())
    print(f"{len(open_jobs)} jobs")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("make")
    command.add_argument("synth", type=pathlib.Path)
    command.add_argument("out", type=pathlib.Path)
    command.add_argument("--per-kind", type=int, default=24)
    command.add_argument("--seed", type=int, default=1)
    command.add_argument("--every", type=int, default=1, help="only every so many-th mutant of each kind; all bases stay")
    command.set_defaults(run=make)
    command = commands.add_parser("settings")
    command.add_argument("out", type=pathlib.Path)
    command.add_argument("verdicts", type=pathlib.Path)
    command.add_argument("known", type=pathlib.Path)
    command.add_argument("--names", help="settings, comma separated; all of them by default")
    command.add_argument("--bases", action="store_true", help="all bases in these settings, too: are correct kernels accepted there?")
    command.set_defaults(run=settings)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    arguments.run(arguments)


if __name__ == "__main__":
    main()
