#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a GPU machine: staged evaluation against running everything, each twice, on the answers that one run recorded; and
# the adaptive curriculum against a fixed mix, step by step.
#
#   dev/gpu_recorded.sh PROGRAM RUN OUT [ARGUMENTS of train for the two curricula ...]
#
# RUN is a run directory with RL steps; the curricula begin with its SFT (run.start_from).
set -euo pipefail
cd "$(dirname "$0")/.."
program=$(realpath "$1") run=$2 out=$3
shift 3
mkdir -p "$out"
python3 dev/jobs_of_run.py "$run" "$out/jobs.jsonl"
for round in 1 2; do
  for stages in staged all; do
    for timing in plain calibrated; do
      rm -f "$out/verdicts.jsonl"
      start=$(date +%s.%N)
      "$program" verify --batch "$out/jobs.jsonl" --out "$out/verdicts.jsonl" --config configs/gpu.yaml \
        --set stages.type=$stages --set timing.type=$timing >"$out/verify.log" 2>&1 || { tail -n 5 "$out/verify.log"; exit 1; }
      python3 - "$out" "$round $stages $timing" "$(echo "$(date +%s.%N) - $start" | bc)" <<'PY'
import collections, json, re, sys
verdicts = [json.loads(line) for line in open(sys.argv[1] + "/verdicts.jsonl")]
took = re.findall(r"candidates/s, took ([^,\n]*)", open(sys.argv[1] + "/verify.log").read())
busy = sum(stage["seconds"] for v in verdicts for stage in v["stages"])
outcomes = collections.Counter(v["outcome"] for v in verdicts)
print(f"{sys.argv[2]:20} {len(verdicts)} candidates, verifying took {took}, with start-up {float(sys.argv[3]):.1f} s, {1e3 * busy / len(verdicts):.1f} ms a candidate summed over stages; {dict(outcomes)}")
PY
    done
  done
done
for type in adaptive fixed_mix; do
  "$program" train configs/gpu.yaml --set run.folder="$out" --set run.name="$type" --set run.start_from="$run" \
    --set data.sampler.type=$type "$@" >"$out/$type.log" 2>&1 || { tail -n 5 "$out/$type.log"; exit 1; }
  python3 - "$out/$type" <<'PY'
import json, sys
steps = [json.loads(line) for line in open(sys.argv[1] + "/steps.jsonl")]
rl = [s for s in steps if s["phase"] == "rl"]
print(sys.argv[1].split("/")[-1], "share of level 2:", [round(s.get("sampler/level2_share", -1), 2) for s in rl], "correct:", [round(s["correct_rate"], 3) for s in rl])
for s in steps:
    if s["phase"] == "eval":
        print("  held out behind step", s["step"], {k: round(v, 3) for k, v in s.items() if k.startswith("level")})
PY
done
