#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a GPU machine: staged evaluation against running everything, each twice, on the answers that one run recorded.
#
#   dev/gpu_recorded.sh PROGRAM RUN OUT [ARGUMENTS of verify ...]
#
# RUN is a run directory with RL steps.
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
        --set stages.type=$stages --set timing.type=$timing "$@" >"$out/verify.log" 2>&1 || { tail -n 5 "$out/verify.log"; exit 1; }
      python3 - "$out" "$round $stages $timing" "$start" <<'PY'
import collections, json, re, sys, time
whole = time.time() - float(sys.argv[3])
verdicts = [json.loads(line) for line in open(sys.argv[1] + "/verdicts.jsonl")]
took = re.findall(r"candidates/s, took ([^,\n]*)", open(sys.argv[1] + "/verify.log").read())
busy = sum(stage["seconds"] for v in verdicts for stage in v["stages"])
outcomes = collections.Counter(v["outcome"] for v in verdicts)
print(f"{sys.argv[2]:20} {len(verdicts)} candidates, verifying took {took}, with start-up {whole:.1f} s, {1e3 * busy / len(verdicts):.1f} ms a candidate summed over stages; {dict(outcomes)}")
PY
    done
  done
done
