# SPDX-License-Identifier: Apache-2.0
"""Our answers, judged by KernelBench's own harness:

    kernelbench_harness.py KERNELBENCH ANSWERS.jsonl TASKS.jsonl --out kb_verdicts.jsonl [--per-task 1] [--jobs 4]

KERNELBENCH is a checkout of KernelBench (of it only src/kernelbench/{__init__,eval,timing,dataset,utils}.py is read), ANSWERS what
`tritonrl eval --out` wrote, TASKS the task set they answer. Needs a GPU and a python3 with torch and triton. The code that the
verifier took out of an answer goes to eval_kernel_against_ref as it is, in a process of its own with a deadline: backend triton,
float32, KernelBench's tolerance, 5 correctness trials. Those that pass are run once more, one at a time, for the speed: 100 timed
trials of the candidate and of the reference (--no-times leaves that out). An answer without code is a failure without a process.

Candidates run here as KernelBench runs them: as ordinary Python, without a sandbox. Use a machine that holds nothing else.

Lines of --out: id, task, level, sample, ours (correct, outcome, rule), theirs (compiled, correct, error, runtime_ms, reference_ms,
ratio). A second call continues; one with nothing left to judge prints the tables alone (needs no GPU).
"""
import argparse
import collections
import concurrent.futures
import json
import math
import pathlib
import sys
import tempfile
import threading
import types

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import peer_kernelbench as peer

FAULT = "harness_fault"


def read_lines(path):
    path = pathlib.Path(path)
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()] if path.exists() else []


def wilson(k, n, z=1.959963984540054):
    """95 % interval of a rate."""
    if n == 0:
        return 0.0, 1.0
    p = k / n
    centre, spread = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return max(0.0, (centre - spread) / (1 + z * z / n)), min(1.0, (centre + spread) / (1 + z * z / n))


def rate(k, n):
    low, high = wilson(k, n)
    return f"{100 * k / n:.1f} % ({100 * low:.0f}-{100 * high:.0f}), {k} of {n}" if n else "-"


def rule_of(verdict):
    """Name of the rule that an answer broke; "" where it passed or none is named."""
    last = verdict["stages"][-1] if verdict.get("stages") else {}
    return (last.get("finding") or {}).get("rule", "")


def chosen(answers, tasks, per_task):
    """The jobs: the first `per_task` first-turn answers of each task, by sample."""
    sources = {task["id"]: task["source"] for task in tasks}
    strangers = sorted({answer["task_id"] for answer in answers} - set(sources))
    if strangers:
        raise SystemExit(f"kernelbench_harness.py: the task set lacks {strangers[0]!r} ({len(strangers)} such tasks)")
    jobs, taken = [], collections.Counter()
    for answer in sorted(answers, key=lambda each: (each["task_id"], each["sample_index"])):
        if answer.get("turn", 1) > 1 or taken[answer["task_id"]] >= per_task:
            continue
        taken[answer["task_id"]] += 1
        verdict = answer["verdict"]
        jobs.append({"id": f"{answer['task_id']}#{answer['sample_index']}", "task": answer["task_id"], "level": answer["level"],
                     "sample": answer["sample_index"], "source": sources[answer["task_id"]], "code": verdict.get("code", ""),
                     "ours": {"correct": verdict["outcome"] == "pass", "outcome": verdict["outcome"], "rule": rule_of(verdict)}})
    return jobs


def judge(job, options, cache, times):
    """Theirs: one process."""
    if not job["code"]:
        return {"compiled": False, "correct": False, "error": "the answer has no code"}
    one = types.SimpleNamespace(kernelbench=options.kernelbench, dry_run=False, timeout=options.timeout, times=times)
    result = peer.run_one(one, {"task": job["source"], "code": job["code"]}, cache)
    result.pop("stubbed", None)
    return result


def merged(first, timed):
    """What the run for correctness and the one for times say together. Not both correct is not correct."""
    theirs = {key: first.get(key) for key in ("compiled", "correct", "error", "seconds")}
    if timed is None:
        return theirs
    theirs["runtime_ms"], theirs["reference_ms"] = timed.get("runtime_ms", -1), timed.get("reference_ms", -1)
    if not timed["correct"]:
        theirs.update(correct=False, error=f"passed once, then: {timed['error']}")
    elif theirs["runtime_ms"] > 0 and theirs["reference_ms"] > 0:
        theirs["ratio"] = theirs["reference_ms"] / theirs["runtime_ms"]
    return theirs


def judge_all(jobs, options, write):
    """Calls write(job, theirs) for each, from several threads, one at a time."""
    lock, begun = threading.Lock(), {}

    def keep(job, theirs):
        with lock:
            write(job, theirs)

    def first(job):
        result = judge(job, options, cache, times=False)
        if options.times and result["correct"]:
            begun[job["id"]] = result
        else:
            keep(job, merged(result, None))

    with tempfile.TemporaryDirectory() as cache:
        with concurrent.futures.ThreadPoolExecutor(max(1, options.jobs)) as pool:
            list(pool.map(first, jobs))
        for job in jobs:  # Alone: nothing else uses the GPU.
            if job["id"] in begun:
                keep(job, merged(begun[job["id"]], judge(job, options, cache, times=True)))


def row_of(job, theirs):
    return {key: job[key] for key in ("id", "task", "level", "sample", "ours")} | {"theirs": theirs}


def one_line(text, most=140):
    return " ".join(str(text or "").split()).replace("|", "/")[:most]


def show(rows, out=print):
    """Ours x theirs, each disagreement, and the rates under theirs. Faults of ours have a row of their own."""
    def ours_of(row):
        return "fault" if row["ours"]["outcome"] == FAULT else "pass" if row["ours"]["correct"] else "fail"

    for level in [*sorted({row["level"] for row in rows}), None]:
        of = [row for row in rows if level in (None, row["level"])]
        count = collections.Counter((ours_of(row), row["theirs"]["correct"]) for row in of)
        out(f"## {'All levels' if level is None else f'Level {level}'}: {len(of)} answers to {len({row['task'] for row in of})} tasks\n")
        out("| ours | KernelBench passes | KernelBench fails |\n|---|---|---|")
        for name in ("pass", "fail") + (("fault",) if any(ours_of(row) == "fault" for row in of) else ()):
            out(f"| {name} | {count[name, True]} | {count[name, False]} |")
        judged = [row for row in of if ours_of(row) != "fault"]
        agreed = sum(row["ours"]["correct"] == row["theirs"]["correct"] for row in judged)
        out(f"\nagree: {rate(agreed, len(judged))}; correct by ours: {rate(sum(row['ours']['correct'] for row in judged), len(judged))}; "
            f"by KernelBench: {rate(sum(row['theirs']['correct'] for row in of), len(of))}")
        right = [row for row in of if row["theirs"]["correct"]]
        timed = [row["theirs"]["ratio"] for row in right if row["theirs"].get("ratio")]
        if len(timed) == len(right):
            mean = f"; geometric mean of their speedups {math.exp(sum(map(math.log, timed)) / len(timed)):.2f}x" if timed else ""
            out(f"fast_1 by KernelBench: {rate(sum(ratio > 1 for ratio in timed), len(of))}{mean}\n")
        else:
            out(f"fast_1 by KernelBench: not measured ({len(right) - len(timed)} of {len(right)} correct answers have no time)\n")
    differ = [row for row in rows if ours_of(row) != "fault" and row["ours"]["correct"] != row["theirs"]["correct"]]
    out(f"## Disagreements: {len(differ)}\n")
    if differ:
        out("| answer | ours | rule | KernelBench | why |\n|---|---|---|---|---|")
    for row in sorted(differ, key=lambda each: (each["ours"]["correct"], each["id"])):
        out(f"| {row['id']} | {row['ours']['outcome']} | {row['ours']['rule']} | {'pass' if row['theirs']['correct'] else 'fail'} | "
            f"{one_line(row['theirs'].get('error'))} |")


def require_gpu(folder):
    if not (pathlib.Path(folder) / "src" / "kernelbench" / "eval.py").exists():
        print(f"kernelbench_harness.py: {folder} holds no src/kernelbench/eval.py: give a checkout of KernelBench", file=sys.stderr)
        sys.exit(2)
    import torch
    if not torch.cuda.is_available():
        print("kernelbench_harness.py: no GPU: KernelBench's harness judges on one", file=sys.stderr)
        sys.exit(3)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernelbench")
    parser.add_argument("answers")
    parser.add_argument("tasks")
    parser.add_argument("--out", required=True)
    parser.add_argument("--per-task", type=int, default=1, help="answers of each task")
    parser.add_argument("--jobs", type=int, default=4, help="answers judged at a time; times are taken one at a time")
    parser.add_argument("--timeout", type=float, default=180, help="seconds for one answer")
    parser.add_argument("--no-times", dest="times", action="store_false", help="correctness alone")
    options = parser.parse_args()
    jobs, out = chosen(read_lines(options.answers), read_lines(options.tasks), options.per_task), pathlib.Path(options.out)
    done = {row["id"] for row in read_lines(out)}
    left = [job for job in jobs if job["id"] not in done]
    if any(job["code"] for job in left):
        require_gpu(options.kernelbench)
    with out.open("a", encoding="utf-8") as file:
        def write(job, theirs):
            file.write(json.dumps(row_of(job, theirs)) + "\n")
            file.flush()
            print(f"{job['id']}: ours {job['ours']['outcome']}, KernelBench {'pass' if theirs['correct'] else 'fail'}", file=sys.stderr)

        judge_all(left, options, write)
    wanted = {job["id"] for job in jobs}
    show([row for row in read_lines(out) if row["id"] in wanted])


if __name__ == "__main__":
    main()
