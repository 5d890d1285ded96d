#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A stored stream of answers and the outcomes they must keep: dev/verifier_stream.py make | jobs | compare.

    make TASKS.jsonl OUT.xz          400 answers: the case files (but those that wait out a deadline), and solutions of TASKS with
                                     and without one mistake each, made as bench/make_verifier_stream.py makes them
    jobs STREAM.xz JOBS.jsonl        the stream as jobs for `tritonrl verify --batch JOBS.jsonl --out VERDICTS.jsonl`
    outcomes VERDICTS.jsonl OUT.json one line an answer: outcome and where it ended
    compare OUT.json EXPECTED.json   prints what differs; exit 1 if anything does
"""
import collections
import json
import lzma
import pathlib
import random
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
SIZE = 400
WAITS = ("infinite_loop", "sleeps_forever", "fork_bomb", "timeout")


def case_jobs():
    for path in sorted((ROOT / "tests/cases").glob("*/*.py")):
        text = path.read_text()
        if path.parent.name == "tasks" or any(word in path.stem or word in text.split("\n")[1] for word in WAITS):
            continue
        task = (ROOT / text.split("# task: ")[1].split("\n")[0].strip()).read_text()
        yield {"id": f"case/{path.parent.name}/{path.stem}", "task": {"code": task}, "candidate": {"text": f"```python\n{text}```\n"}}


def solution_jobs(tasks, count):
    import make_verifier_stream as stream
    rng = random.Random(7)
    tasks = [task for task in tasks if task.get("solution")]
    kinds = [kind for kind in stream.KINDS if kind != "no_code"]
    number = 0
    while number < count:
        task = tasks[number % len(tasks)]
        kind = "correct" if number < len(tasks) else rng.choice(kinds)
        code = task["solution"]
        if kind != "correct":
            code = stream.with_mistake(kind, stream.rename_kernels(code, number), rng)
            if code is None:
                continue
        what = {"code": task["source"]}
        what.update({key: task[key] for key in ("level", "tiny", "larger") if key in task})
        yield {"id": f"{kind}/{number}/{task['id']}", "task": what, "candidate": {"text": f"```python\n{code}```\n"}}
        number += 1


def main(verb, source, target):
    if verb == "make":
        jobs = list(case_jobs())
        with open(source, encoding="utf-8") as file:
            jobs += solution_jobs([json.loads(line) for line in file], SIZE - len(jobs))
        with lzma.open(target, "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(job) + "\n" for job in jobs)
        print(len(jobs), dict(collections.Counter(job["id"].split("/")[0] for job in jobs)))
    elif verb == "jobs":
        with lzma.open(source, "rt", encoding="utf-8") as file, open(target, "w", encoding="utf-8") as out:
            out.write(file.read())
    elif verb == "outcomes":
        with open(source, encoding="utf-8") as file:
            verdicts = [json.loads(line) for line in file]
        found = {v["id"]: v["outcome"] + " @" + v["stages"][-1]["stage"] for v in verdicts}
        with open(target, "w", encoding="utf-8") as out:
            json.dump(dict(sorted(found.items())), out, indent=0)
        print(collections.Counter(v["outcome"] for v in verdicts))
    elif verb == "compare":
        found, expected = (json.loads(pathlib.Path(path).read_text()) for path in (source, target))
        differ = [key for key in expected if found.get(key) != expected[key]]
        for key in differ:
            print(f"{key}: {expected[key]} -> {found.get(key, 'missing')}")
        print(f"{len(expected) - len(differ)} of {len(expected)} the same")
        raise SystemExit(1 if differ or len(found) != len(expected) else 0)
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
