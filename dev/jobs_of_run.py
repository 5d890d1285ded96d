#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A run's rollouts as jobs for `tritonrl verify --batch`, so that verifiers can be compared on one recorded stream.

    dev/jobs_of_run.py RUN OUT.jsonl     # then: tritonrl verify --batch OUT.jsonl --out verdicts.jsonl
"""
import json
import pathlib
import sys


def lines(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


run, out = pathlib.Path(sys.argv[1]), sys.argv[2]
tasks = {}
for name in ("rl", "heldout"):
    for task in lines(run / f"tasks/{name}.jsonl"):
        tasks[task["id"]] = task
jobs = []
for path in sorted(run.glob("rollouts/step_*.jsonl")):
    for line in lines(path):
        task = tasks[line["task_id"]]
        what = {"code": task["source"]}
        what.update({key: task[key] for key in ("id", "level", "tiny", "larger") if key in task})
        jobs.append({"id": f"{path.stem}/{len(jobs)}/{line['task_id']}#{line['sample_index']}", "task": what, "candidate": {"text": line["text"]}})
with open(out, "w", encoding="utf-8") as file:
    file.writelines(json.dumps(job) + "\n" for job in jobs)
print(f"{len(jobs)} jobs of {len(tasks)} tasks")
