#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What dev/gpu.sh makes of JSON lines: dev/tables.py COMMAND ARGUMENTS.

    level TASKS.jsonl LEVEL OUT.jsonl  the tasks of a level; exit 1 if there are none
    jobs RUN JOBS.jsonl                a run's rollouts as jobs for `tritonrl verify --batch`
    mixed_jobs JOBS.jsonl              100 case files, half honest, a quarter wrong, a quarter broken; none waits for a deadline
    recorded VERDICTS LOG LABEL START  what one verification of such jobs took since START (seconds since 1970)
    storm_jobs JOBS.jsonl COUNT        case files picked at random, one in ten of them faulting
    storm VERDICTS COUNT               verdicts that are not what the case's file says; exit 1 if there are any or some are missing
    overlap OUT                        seconds a step of the runs in OUT, and how far their times are from those of the first
    resume OUT                         steps, rewards and answers of the runs in OUT
    references ROWS.jsonl              what bench_references said of each task
    stream_make TASKS.jsonl STREAM.xz  400 answers: case files that end soon, solutions of TASKS with and without one mistake each
    stream_jobs STREAM.xz JOBS.jsonl   the stream as jobs for `tritonrl verify --batch`
    stream_outcomes VERDICTS OUT.json  one line an answer: outcome and where it ended
    stream_compare OUT.json EXPECTED   prints what differs; exit 1 if anything does
    verifier_step OUT STEP STATUS SECONDS COMMIT DEVICE  how a step of `dev/gpu.sh verifier` ended: prints it, and a line of OUT/verifier.jsonl
"""
import collections
import inspect
import json
import lzma
import os
import pathlib
import platform
import random
import re
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
FAULTING = {"infinite_kernel", "illegal_address", "far_out_of_bounds", "huge_allocation", "device_print_flood", "huge_grid",
            "prints_forever", "kills_parent"}
WAITING = ("infinite_loop", "sleeps_forever", "fork_bomb", "timeout")


def read_lines(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def read_json(path):
    return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))


def write_lines(path, rows, opened=open):
    with opened(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def counted(rows):
    return collections.Counter(row["outcome"] for row in rows)


def case_files():
    for path in sorted((ROOT / "tests/cases").glob("*/*.py")):
        if path.parent.name != "tasks":
            text = path.read_text()
            head = dict(line[2:].split(": ", 1) for line in text.split("\n")[:5] if line.startswith("# ") and ": " in line)
            yield path, text, head


def waits(path, head):
    return any(word in path.stem or word in head["expect"] for word in WAITING)


def inline_task(task, *keys):
    return {"code": task["source"], **{key: task[key] for key in keys if key in task}}


def quantile(ordered, share):
    return ordered[int(len(ordered) * share)]


def rl_steps(run):
    return [step for step in read_lines(run / "steps.jsonl") if step["phase"] == "rl"]


def level(tasks, wanted, out):
    chosen = [task for task in read_lines(tasks) if task["level"] == int(wanted)]
    write_lines(out, chosen)
    sys.exit(0 if chosen else f"tables.py: {tasks} has no task of level {wanted}")


def jobs(run, out):
    run = pathlib.Path(run)
    tasks = {task["id"]: task for name in ("rl", "heldout") for task in read_lines(run / f"tasks/{name}.jsonl")}
    found = []
    for path in sorted(run.glob("rollouts/step_*.jsonl")):
        for line in read_lines(path):
            task = tasks[line["task_id"]]
            name = f"{path.stem}/{len(found)}/{line['task_id']}#{line['sample_index']}"
            found.append({"id": name, "task": inline_task(task, "id", "level", "tiny", "larger"), "candidate": {"text": line["text"]}})
    write_lines(out, found)
    print(f"{len(found)} jobs of {len(tasks)} tasks")


def mixed_jobs(out):
    cases = collections.defaultdict(list)
    for path, text, head in case_files():
        if not waits(path, head):
            cases[path.parent.name].append((text, str(ROOT / head["task"])))
    picked = [cases[kind][i % len(cases[kind])] for kind, count in (("honest", 50), ("wrong", 25), ("broken", 25)) for i in range(count)]
    write_lines(out, ({"id": str(i), "task": task, "candidate": {"text": f"```python\n{text}\n# copy {i}\n```\n"}}
                      for i, (text, task) in enumerate(picked)))


def recorded(verdicts, log, label, start):
    seconds = time.time() - float(start)
    rows = read_lines(verdicts)
    took = re.findall(r"candidates/s, took ([^,\n]*)", pathlib.Path(log).read_text(encoding="utf-8"))
    busy = sum(stage["seconds"] for row in rows for stage in row["stages"])
    print(f"{label:20} {len(rows)} candidates, verifying took {took}, with start-up {seconds:.1f} s, "
          f"{1e3 * busy / len(rows):.1f} ms a candidate summed over stages; {dict(counted(rows))}")


def storm_jobs(out, count):
    cases = {"fault": [], "rest": []}
    for path, text, head in case_files():
        expect = head.get("expect-gpu") or head["expect"].replace("pass @full_run", "pass @time")
        if "timeout @compile" in expect or " or " in expect:
            continue  # Waits for the deadline, or is left to luck.
        bad = "timeout" in expect or "@tiny_run" in expect and ("runtime_error" in expect or "out_of_memory" in expect)
        cases["fault" if bad or path.stem in FAULTING else "rest"].append((path, text, head["task"], expect))
    print({kind: len(items) for kind, items in cases.items()}, sorted({case[0].stem for case in cases["fault"]}))
    random.seed(1)
    found = []
    for i in range(int(count)):
        path, text, task, expect = random.choice(cases["fault" if i % 10 == 0 else "rest"])
        found.append({"id": f"{i}|{path.parent.name}/{path.stem}|{expect}", "task": str(ROOT / task),
                      "candidate": {"text": f"```python\n{text}\n# copy {i}\n```\n"}})
    write_lines(out, found)


def storm(verdicts, count):
    rows = read_lines(verdicts)
    wrong = collections.Counter()
    for row in rows:
        _, name, expect = row["id"].split("|")
        got = f"{row['outcome']} @{row['stopped_at']}"
        if got not in expect.split(" or "):
            message = next((stage["message"] for stage in row["stages"] if stage.get("message")), "")
            wrong[name, got, expect, message[:120]] += 1
    print(f"{len(rows)} of {count} verdicts, {wrong.total()} other than the file says")
    for key, times in wrong.most_common(20):
        print(times, *key, sep=" | ")
    print(dict(counted(rows)))
    raise SystemExit(1 if wrong or len(rows) != int(count) else 0)


def overlap(out):
    def ratios(run):
        return {(row["task"], row["code"]): row["timing"]["ratio"] for row in read_lines(run / "verdicts.jsonl")
                if row.get("timing") and row["phase"].startswith("rl/")}

    out = pathlib.Path(out)
    columns = ("time/phase/rollout", "time/phase/verify", "time/rollout_gave_way", "time/wait_rollout", "time/wait_verify", "time/idle",
               "time/phase/update", "seconds")
    first = ratios(out / "apart")
    for run in ("apart", "beside", "ahead", "again"):
        steps = rl_steps(out / run)
        means = ", ".join(f"{column.split('/')[-1]} {statistics.mean(step[column] for step in steps):.2f}" for column in columns)
        print(f"{run:7} {len(steps)} steps, means in s: {means}; correct {[round(step['correct_rate'], 3) for step in steps]}")
        off = sorted(abs(ratio / first[key] - 1) for key, ratio in ratios(out / run).items() if key in first)
        if run != "apart" and off:
            print(f"        times of {len(off)} equal answers: off by {quantile(off, .5):.2%} at the median, "
                  f"{quantile(off, .95):.2%} at the 95th percentile, {off[-1]:.2%} at most")


def resume(out):
    def rollouts(run):
        return {(path.name, number): line for path in sorted((out / run).glob("rollouts/step_*.jsonl"))
                for number, line in enumerate(read_lines(path))}

    out = pathlib.Path(out)
    whole = rollouts("whole")
    for run in ("whole", "again", "killed"):
        steps = rl_steps(out / run)
        print(f"{run:7} correct {[round(step['correct_rate'], 4) for step in steps]}, "
              f"reward {[round(step['reward/mean'], 4) for step in steps]}, steps {[step['step'] for step in steps]}")
        if run == "whole":
            continue
        mine = rollouts(run)
        for name in sorted({key[0] for key in whole}):
            keys = [key for key in whole if key[0] == name]
            pairs = [(mine[key]["reward"], whole[key]["reward"]) for key in keys if key in mine and mine[key]["text"] == whole[key]["text"]]
            off = sorted(abs(a - b) for a, b in pairs if a is not None and b is not None)
            rest = f"; their rewards differ by {quantile(off, .5):.4f} at the median, {off[-1]:.4f} at most" if off else ""
            print(f"        {name}: {len(pairs)} of {len(keys)} answers equal{rest}")
        ends = [read_json(out / name / "results.json")["rows"][-1]["levels"] for name in ("whole", run)]
        print(f"        held out, correct on level 1 and 2: {[[end[level]['correct']['k'] for level in ('1', '2')] for end in ends]}")


def references(path):
    rows = read_lines(path)
    print(len(rows), counted(rows))
    for row in rows:
        if row["outcome"] != "pass":
            print(row["id"], row["name"], row["outcome"], row.get("message", "")[:160])
    for key in ("record_reference_s", "record_candidate_s", "run_s", "time_s", "lint_s", "ratio"):
        values = sorted(row[key] for row in rows if key in row)
        print(f"{key}: median {quantile(values, .5):.4f}, p95 {quantile(values, .95):.4f}, max {values[-1]:.4f}" if values else "")
    for row in rows:
        if row.get("flags"):
            print("lint:", row["id"], row["name"], "; ".join(": ".join(flag) for flag in row["flags"]))
    drops = [row["drops"] for row in rows if "drops" in row]
    if drops:
        print("drops tried, impossible:", [sum(drop[i] for drop in drops) for i in (0, 1)])
    outside = [row for row in rows if "ratio" in row and abs(row["ratio"] - 1) > row["noise_band"]]
    print("outside of the band:", [(row["id"], round(row["ratio"], 4), round(row["noise_band"], 4)) for row in outside][:40])


def stream_make(tasks, stream):
    import make_verifier_stream as mistakes
    found = []
    for path, text, head in case_files():
        if not waits(path, head):
            found.append({"id": f"case/{path.parent.name}/{path.stem}", "task": {"code": (ROOT / head["task"]).read_text()},
                          "candidate": {"text": f"```python\n{text}```\n"}})
    rng = random.Random(7)
    tasks = [task for task in read_lines(tasks) if task.get("solution")]
    kinds = [kind for kind in mistakes.KINDS if kind != "no_code"]
    cases = len(found)
    while len(found) < 400:
        number = len(found) - cases
        task = tasks[number % len(tasks)]
        kind = "correct" if number < len(tasks) else rng.choice(kinds)
        code = task["solution"] if kind == "correct" else mistakes.with_mistake(kind, mistakes.rename_kernels(task["solution"], number), rng)
        if code is not None:
            found.append({"id": f"{kind}/{number}/{task['id']}", "task": inline_task(task, "level", "tiny", "larger"),
                          "candidate": {"text": f"```python\n{code}```\n"}})
    write_lines(stream, found, lzma.open)
    print(len(found), dict(collections.Counter(job["id"].split("/")[0] for job in found)))


def stream_jobs(stream, out):
    pathlib.Path(out).write_bytes(lzma.decompress(pathlib.Path(stream).read_bytes()))


def stream_outcomes(verdicts, out):
    found = {row["id"]: f"{row['outcome']} @{row['stages'][-1]['stage']}" for row in read_lines(verdicts)}
    pathlib.Path(out).write_text(json.dumps(found, indent=0, sort_keys=True), encoding="utf-8")
    print(collections.Counter(outcome.split(" @")[0] for outcome in found.values()))


def stream_compare(out, expected):
    found, expected = read_json(out), read_json(expected)
    differ = [key for key in expected if found.get(key) != expected[key]]
    for key in differ:
        print(f"{key}: {expected[key]} -> {found.get(key, 'missing')}")
    print(f"{len(expected) - len(differ)} of {len(expected)} the same")
    raise SystemExit(1 if differ or len(found) != len(expected) else 0)


def verifier_step(out, step, status, seconds, commit, device):
    log = (pathlib.Path(out) / f"verifier_{step}.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
    row = {"step": step, "status": status, "seconds": int(seconds), "commit": commit, "device": device, "processor": platform.processor() or platform.machine(),
           "cores": os.cpu_count(), "date": time.strftime("%Y-%m-%d %H:%M"), "said": log[-12:]}
    with open(pathlib.Path(out) / "verifier.jsonl", "a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    print(f"{step}: {status} after {seconds} s; {log[-1] if log else ''}", flush=True)


COMMANDS = {command.__name__: command for command in (level, jobs, mixed_jobs, recorded, storm_jobs, storm, overlap, resume, references,
                                                      stream_make, stream_jobs, stream_outcomes, stream_compare,
                                                      verifier_step)}

if __name__ == "__main__":
    chosen = COMMANDS.get(sys.argv[1] if len(sys.argv) > 1 else "")
    if chosen is None or len(sys.argv) - 2 != len(inspect.signature(chosen).parameters):
        raise SystemExit(__doc__)
    chosen(*sys.argv[2:])
