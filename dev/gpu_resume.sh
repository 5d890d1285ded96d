#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Kills a training run on a GPU at random moments, goes on each time, and holds its rewards against those of a run that was
# never killed. On the CPU the two are equal bit for bit (kill_often.sh); on a GPU sums depend on what else is in a batch.
#
#   dev/gpu_resume.sh PROGRAM OUT START KILLS CONFIG ... [ARGUMENTS of train ...]
#
# START is a run whose supervised part is taken over. Kills come AFTER (14) to AFTER + WITHIN (14) seconds behind a start.
# Prints each step's rewards of three runs: whole, again (also never killed: what chance does by itself) and killed.
set -euo pipefail
program=$(realpath "$1") out=$2 start=$3 kills=$4
shift 4
mkdir -p "$out"
train() {
  local name=$1
  shift
  exec "$program" train "$@" --set run.folder="$out" --set run.name="$name" --set run.start_from="$start" --set verify.seed=4294967311
}
(train whole "$@") >"$out/whole.log" 2>&1
(train again "$@") >"$out/again.log" 2>&1
: >"$out/killed.log"
done_kills=0
while [ "$done_kills" -lt "$kills" ]; do
  (train killed "$@") >>"$out/killed.log" 2>&1 &
  job=$!
  after=$((RANDOM % ${WITHIN:-14} + ${AFTER:-14})).$((RANDOM % 10))
  sleep "$after"
  if ! kill -9 $job 2>/dev/null; then
    wait $job || true
    echo "the run ended by itself before kill $((done_kills + 1))"
    break
  fi
  wait $job 2>/dev/null || true
  done_kills=$((done_kills + 1))
  echo "kill $done_kills after $after s: $(grep -c '"phase":"rl"' "$out/killed/steps.jsonl" 2>/dev/null || true) steps made, rollouts of $(ls "$out/killed/rollouts" 2>/dev/null | tr '\n' ' ')"
done
(train killed "$@") >>"$out/killed.log" 2>&1
python3 - "$out" <<'PY'
import glob, json, os, sys

out = sys.argv[1]
def steps(run):
    return [s for s in map(json.loads, open(f"{out}/{run}/steps.jsonl")) if s["phase"] == "rl"]

def rollouts(run):
    texts = {}
    for path in sorted(glob.glob(f"{out}/{run}/rollouts/step_*.jsonl")):
        for number, line in enumerate(open(path)):
            texts[os.path.basename(path), number] = json.loads(line)
    return texts

whole = rollouts("whole")
for run in ("whole", "again", "killed"):
    print(f"{run:7} correct {[round(s['correct_rate'], 4) for s in steps(run)]}, reward {[round(s['reward/mean'], 4) for s in steps(run)]}, steps {[s['step'] for s in steps(run)]}")
    if run == "whole":
        continue
    mine = rollouts(run)
    for step in sorted({key[0] for key in whole}):
        keys = [key for key in whole if key[0] == step]
        same = [key for key in keys if key in mine and mine[key]["text"] == whole[key]["text"]]
        off = sorted(abs(mine[key]["reward"] - whole[key]["reward"]) for key in same if mine[key]["reward"] is not None and whole[key]["reward"] is not None)
        if off:
            print(f"        {step}: {len(same)} of {len(keys)} answers equal; their rewards differ by {off[len(off) // 2]:.4f} at the median, {off[-1]:.4f} at most")
        else:
            print(f"        {step}: 0 of {len(keys)} answers equal")
    ends = [json.load(open(f"{out}/{name}/results.json"))["rows"][-1]["levels"] for name in ("whole", run)]
    print(f"        held out, correct on level 1 and 2: {[[end[level]['correct']['k'] for level in ('1', '2')] for end in ends]}")
PY
