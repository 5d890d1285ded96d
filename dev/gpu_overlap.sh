#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What overlap brings on a GPU machine, and whether it disturbs what is timed there: the same RL steps one thing after the
# other, verifying while sampling, sampling ahead too (rl.staleness), and one after the other again.
#
#   dev/gpu_overlap.sh PROGRAM OUT CONFIG [ARGUMENTS of train ...]
#
# SFT is done once. Prints seconds a step by phase, and how far the times (against the reference) of equal answers are from those of the
# first run: the second sequential run shows what timing does by itself.
set -euo pipefail
program=$(realpath "$1") out=$2 config=$3
shift 3
mkdir -p "$out"
train() {
  local name=$1 stream=$2 staleness=$3
  shift 3
  "$program" train "$config" --set run.folder="$out" --set run.name="$name" --set verify.seed=4294967311 \
    --set rl.stream="$stream" --set eval.stream="$stream" \
    --set rl.staleness="$staleness" "$@" >"$out/$name.log" 2>&1 || { tail -n 5 "$out/$name.log"; exit 1; }
}
train apart false 0 "$@"
train beside true 0 --set run.start_from="$out/apart" "$@"
train ahead true 1 --set run.start_from="$out/apart" "$@"
train again false 0 --set run.start_from="$out/apart" "$@"
python3 - "$out" <<'PY'
import json, statistics, sys

def lines(run, name):
    return [json.loads(line) for line in open(f"{sys.argv[1]}/{run}/{name}")]

def ratios(run):
    return {(v["task"], v["code"]): v["timing"]["ratio"] for v in lines(run, "verdicts.jsonl") if v.get("timing") and v["phase"].startswith("rl/")}

columns = ["time/phase/rollout", "time/phase/verify", "time/rollout_gave_way", "time/wait_rollout", "time/wait_verify", "time/idle", "time/phase/update", "seconds"]
first = ratios("apart")
for run in ("apart", "beside", "ahead", "again"):
    steps = [step for step in lines(run, "steps.jsonl") if step["phase"] == "rl"]
    means = ", ".join(f"{column.split('/')[-1]} {statistics.mean(step[column] for step in steps):.2f}" for column in columns)
    print(f"{run:7} {len(steps)} steps, means in s: {means}; correct {[round(step['correct_rate'], 3) for step in steps]}")
    off = sorted(abs(ratio / first[key] - 1) for key, ratio in ratios(run).items() if key in first)
    if run != "apart" and off:
        print(f"        times of {len(off)} equal answers: off by {off[len(off) // 2]:.2%} at the median, {off[int(len(off) * .95)]:.2%} at the 95th percentile, {off[-1]:.2%} at most")
PY
