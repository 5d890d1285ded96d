# SPDX-License-Identifier: Apache-2.0
"""Parts of compare_kernelbench.sh.

    compare_kernelbench.py ours BUILD JOBS.jsonl VERDICTS.jsonl [--workers N] [--first N] [--no-code] [--ids-of PEER.jsonl] [--limit S]
        one run of `tritonrl verify --batch`, from nothing; VERDICTS.jsonl.seconds holds its wall time (start-up included)
        and when each verdict came.
    compare_kernelbench.py table FOLDER KERNELBENCH
        what compare_kernelbench.sh left in FOLDER, as Markdown.
"""
import argparse
import hashlib
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

WITHOUT_TRITON = ("no_model", "import", "init")  # Kinds that fail before Triton compiles anything.


def read(path):
    path = pathlib.Path(path)
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def ours(arguments):
    jobs, out = read(arguments.jobs), pathlib.Path(arguments.verdicts)
    if arguments.ids_of:
        wanted = {row["id"] for row in read(arguments.ids_of)}
        jobs = [job for job in jobs if job["id"] in wanted]
    jobs = jobs[:arguments.first] if arguments.first else jobs
    if arguments.no_code:
        jobs = [{**jobs[0], "candidate": {"text": "No code."}}]
    picked = out.with_suffix(".jobs")
    picked.write_text("".join(json.dumps(job) + "\n" for job in jobs))
    out.unlink(missing_ok=True)
    command = [str(pathlib.Path(arguments.build) / "tritonrl"), "verify", "--batch", str(picked), "--out", str(out)]
    if arguments.workers:
        command += ["--set", f"verify.workers={arguments.workers}"]
    start, came, seen = time.perf_counter(), [], 0
    with open(out.with_suffix(".log"), "w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        while True:
            ended = process.poll() is not None
            if out.exists():
                with open(out, "rb") as lines:
                    lines.seek(seen)
                    new = lines.read()
                seen += len(new)
                came += [time.perf_counter() - start] * new.count(b"\n")
            if ended:
                break
            if time.perf_counter() - start > arguments.limit:
                process.terminate()
                process.wait()
            time.sleep(0.002)
    wall = time.perf_counter() - start
    out.with_suffix(".seconds").write_text(json.dumps({"wall_s": wall, "came_s": came, "jobs": len(jobs), "exit": process.returncode}))
    print(f"{out.name}: {len(came)} of {len(jobs)} in {wall:.2f} s, exit {process.returncode}", flush=True)


class Batch:
    """One run of ours."""

    def __init__(self, folder, name):
        self.verdicts = {row["id"]: row for row in read(folder / f"{name}.jsonl")}
        file = folder / f"{name}.seconds"
        self.times = json.loads(file.read_text()) if file.exists() else {"wall_s": 0.0, "came_s": [], "jobs": 0}
        self.wall = self.times["wall_s"]

    def __len__(self):
        return len(self.verdicts)


def latency(verdict):
    return sum(stage["seconds"] for stage in verdict["stages"])


def middle(values):
    return statistics.median(values) if values else float("nan")


def p95(values):
    return sorted(values)[min(len(values) - 1, int(len(values) * 0.95))] if values else float("nan")


def seconds(value):
    if value != value:
        return "-"
    if value < 1e-3:
        return f"{value * 1e6:.0f} us"
    return f"{value * 1e3:.1f} ms" if value < 1 else f"{value:.2f} s"


def ratio(a, b):
    return f"{a / b:.1f}x" if b > 0 and a == a and b == b else "-"


def rows_of(head, lines):
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for line in lines:
        print("| " + " | ".join(str(cell) for cell in line) + " |")
    print()


def machine(kernelbench):
    try:
        import torch
        import triton
        gpu = torch.cuda.get_device_name(0) if torch.cuda.is_available() else "no GPU"
        versions = f"torch {torch.__version__}, triton {triton.__version__}"
    except ImportError:
        gpu, versions = "no torch", ""
    commit = os.environ.get("COMMIT") or subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True,
                                                        cwd=pathlib.Path(__file__).parent, check=False).stdout.strip()
    harness = hashlib.sha256((pathlib.Path(kernelbench) / "src/kernelbench/eval.py").read_bytes()).hexdigest()[:12]
    print(f"Commit {commit or 'unknown'}; {gpu}, {os.cpu_count()} cores, Python {platform.python_version()}, {versions}; "
          f"KernelBench's eval.py has sha256 {harness}.\n")


def rates(mixed, subset, start, peer_mixed, correct, correct_alone, peer_correct):
    def rate(batch, less=0.0):
        return len(batch) / (batch.wall - less) if batch.wall > less else float("nan")

    def peer_rate(rows):
        spent = sum(row["seconds"] for row in rows)
        return len(rows) / spent if spent > 0 else float("nan")

    lines = []
    for name, batch, rows, less in (
            ("mixed stream, all of ours", mixed, peer_mixed, 0.0), ("mixed stream, exactly the peer's sample", subset, peer_mixed, 0.0),
            ("the same, without our start-up", subset, peer_mixed, start), ("all correct", correct, peer_correct, 0.0),
            ("all correct, without our start-up", correct, peer_correct, start),
            ("all correct, one at a time, without our start-up", correct_alone, peer_correct, start)):
        lines.append((name, len(batch), f"{rate(batch, less):.2f}", len(rows), f"{peer_rate(rows):.3f}", ratio(rate(batch, less), peer_rate(rows))))
    print(f"Candidates per second. Start-up of ours (a batch of one answer without code): {seconds(start)}.\n")
    rows_of(("", "candidates", "tritonrl", "candidates", "KernelBench", "ratio"), lines)


def per_task(candidates, alone, peer):
    lines, by_level = [], {}
    for row in peer:
        verdict, candidate = alone.verdicts.get(row["id"]), candidates[row["id"]]
        if verdict is None:
            continue
        if verdict["correct"] and row["correct"]:
            by_level.setdefault(candidate["level"], []).append(row["seconds"] / latency(verdict))
        timing = verdict.get("timing") or {}
        ours_ratio = timing.get("ratio")
        theirs = row.get("reference_ms", -1) / row["runtime_ms"] if row.get("runtime_ms", -1) > 0 else None
        lines.append((candidate["level"], candidate["problem"], seconds(row["seconds"]), seconds(row.get("call_s", float("nan"))),
                      seconds(latency(verdict)), ratio(row["seconds"], latency(verdict)), verdict["outcome"], "correct" if row["correct"] else "not correct",
                      f"{ours_ratio:.2f}" if ours_ratio else "-", f"{theirs:.2f}" if theirs else "-"))
    print("Candidates that pass, one at a time: one process of KernelBench's (all of it, and the function alone) beside the sum of our stages.\n")
    rows_of(("level", "task", "KernelBench", "function", "tritonrl", "ratio", "ours says", "KernelBench says", "speedup (ours)", "speedup (KernelBench)"), sorted(lines))
    for level, ratios in sorted(by_level.items()):
        print(f"Level {level}: {len(ratios)} tasks, ratio median {middle(ratios):.1f}x, least {min(ratios):.1f}x.\n")


def per_kind(candidates, mixed, peer):
    done, lines = {row["id"]: row for row in peer}, []
    kinds = list(dict.fromkeys(row["kind"] for row in candidates.values() if row["set"] == "mixed"))
    for kind in kinds:
        ids = [key for key, row in candidates.items() if row["set"] == "mixed" and row["kind"] == kind]
        mine = [latency(mixed.verdicts[key]) for key in ids if key in mixed.verdicts]
        theirs = [done[key]["seconds"] for key in ids if key in done]
        outcomes = {}
        for key in ids:
            if key in mixed.verdicts:
                outcome = mixed.verdicts[key]["outcome"]
                outcomes[outcome] = outcomes.get(outcome, 0) + 1
        lines.append((kind, len(mine), seconds(middle(mine)), len(theirs), seconds(middle(theirs)), ", ".join(f"{n} {o}" for o, n in sorted(outcomes.items(), key=lambda x: -x[1]))))
    print("Mixed stream by kind of mistake: medians of one candidate (ours under full load), and our outcomes.\n")
    rows_of(("kind", "tritonrl", "median", "KernelBench", "median", "outcomes"), lines)


def stages(candidates, batches):
    lines = []
    for name, batch in batches:
        picks = {"syntax rejects: extract + syntax": lambda v, k: v["stopped_at"] in ("extract", "syntax") and latency(v),
                 "compile rejects without a Triton compile": lambda v, k: k in WITHOUT_TRITON and v["stopped_at"] == "compile" and last(v),
                 "compile rejects in a kernel (Triton's time included)": lambda v, k: k == "kernel" and v["stopped_at"] == "compile" and last(v)}
        for stage in ("compile", "tiny_run", "full_run", "time"):
            picks[f"{stage}, of those that pass" + (" (Triton's time included)" if stage == "compile" else "")] = \
                lambda v, k, stage=stage: v["correct"] and stage_seconds(v, stage)
        for what, pick in picks.items():
            values = [value for key, verdict in batch.verdicts.items() if (value := pick(verdict, candidates[key]["kind"]))]
            if values:
                lines.append((name, what, len(values), seconds(middle(values)), seconds(p95(values))))
        recorded = [stage_seconds(v, "compile") - v["triton_compile_s"] for v in batch.verdicts.values() if v["correct"] and v.get("triton_compile_s") is not None]
        if recorded:
            lines.append((name, "recording, of those that pass, less Triton's compile time", len(recorded), seconds(middle(recorded)), seconds(p95(recorded))))
    print("Our stages.\n")
    rows_of(("run", "stage", "n", "median", "p95"), lines)


def stage_seconds(verdict, name):
    return next((stage["seconds"] for stage in verdict["stages"] if stage["stage"] == name), None)


def last(verdict):
    return verdict["stages"][-1]["seconds"]


def scaling(runs, start):
    rate = {workers: len(batch) / (batch.wall - start) for workers, batch in runs if batch.wall > start}
    lines = [(workers, len(batch), f"{rate[workers]:.2f}", ratio(rate[workers], rate.get(1, float("nan"))))
             for workers, batch in runs if workers in rate]
    print("Scaling on the head of the mixed stream, without start-up.\n")
    rows_of(("workers", "candidates", "candidates/s", "against one"), lines)


def agreement(candidates, mine, peer):
    both = [(row, mine[row["id"]]) for row in peer if row["id"] in mine]
    differ = [(row, verdict) for row, verdict in both if row["correct"] != verdict["correct"]]
    print(f"Verdicts (correct or not): the two agree on {len(both) - len(differ)} of {len(both)}.\n")
    if differ:
        rows_of(("candidate", "kind", "tritonrl", "why", "KernelBench", "why"),
                [(row["id"], candidates[row["id"]]["kind"], verdict["outcome"], one_line(verdict["reason"]), "correct" if row["correct"] else "not correct",
                  one_line(row["error"])) for row, verdict in differ])
    faults = [key for key, verdict in mine.items() if verdict["outcome"] == "harness_fault"]
    missed = [key for key, verdict in mine.items() if candidates[key]["kind"] == "correct" and not verdict["correct"]]
    passed = [key for key, verdict in mine.items() if candidates[key]["kind"] != "correct" and verdict["correct"]]
    print(f"Of all {len(mine)} verdicts of ours: {len(faults)} harness faults; not passed though written as correct: {missed or 'none'}; "
          f"passed though written with a mistake: {passed or 'none'}.\n")
    for key in faults + missed:
        print(f"- {key}: {mine[key]['outcome']} at {mine[key]['stopped_at']}: {one_line(mine[key]['reason'])}")


def one_line(text):
    return " ".join(text.split()).replace("|", "/")[:160]


def table(arguments):
    folder = pathlib.Path(arguments.folder)
    candidates = {row["id"]: row for row in read(folder / "candidates.jsonl")}
    mixed, correct, alone, subset = (Batch(folder, name) for name in ("mixed", "correct", "correct_alone", "subset"))
    start = Batch(folder, "start").wall
    peer_mixed, peer_correct = read(folder / "peer_mixed.jsonl"), read(folder / "peer_correct.jsonl")
    print("# The verifier beside KernelBench's harness\n")
    machine(arguments.kernelbench)
    stubbed = sorted({name for row in peer_mixed + peer_correct for name in row.get("stubbed", [])})
    print(f"Stubbed for KernelBench: {', '.join(stubbed) or 'nothing'}. Its time is one process a candidate, one after the other: "
          "5 inputs compared, 100 timed runs of candidate and of reference.")
    readings = [v["timing"]["readings"] for v in correct.verdicts.values() if v.get("timing")]
    print(f"Ours: the candidate replayed on tiny and full inputs and once without its launches, {middle(readings):.0f} timed pairs.\n"
          if readings else "Ours: nothing was timed.\n")
    rates(mixed, subset, start, peer_mixed, correct, alone, peer_correct)
    per_task(candidates, alone, peer_correct)
    per_kind(candidates, mixed, peer_mixed)
    runs = [(workers, Batch(folder, f"workers_{workers}")) for workers in (1, 4, 16)]
    runs = [(workers, batch) for workers, batch in runs if len(batch)]
    stages(candidates, [("mixed, all cores", mixed), ("correct, one at a time", alone)] + [(f"mixed, {workers} worker", batch) for workers, batch in runs[:1]])
    scaling(runs, start)
    agreement(candidates, {**mixed.verdicts, **correct.verdicts}, peer_mixed + peer_correct)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    run = commands.add_parser("ours")
    run.add_argument("build")
    run.add_argument("jobs")
    run.add_argument("verdicts")
    run.add_argument("--workers", type=int, default=0)
    run.add_argument("--first", type=int, default=0, help="only so many jobs")
    run.add_argument("--no-code", action="store_true", help="one answer without code: what start-up takes")
    run.add_argument("--ids-of", help="only jobs with an id in this file")
    run.add_argument("--limit", type=float, default=120, help="seconds")
    run.set_defaults(call=ours)
    show = commands.add_parser("table")
    show.add_argument("folder")
    show.add_argument("kernelbench")
    show.set_defaults(call=table)
    arguments = parser.parse_args()
    arguments.call(arguments)


if __name__ == "__main__":
    sys.exit(main())
