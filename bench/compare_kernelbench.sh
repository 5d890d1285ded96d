#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The verifier beside KernelBench's harness, same candidates, same machine, one run:
#
#   bench/compare_kernelbench.sh BUILD KERNELBENCH TASKS OUT [PEER_BUDGET_S]
#
# KERNELBENCH is a checkout of KernelBench (only src/kernelbench/{__init__,eval,timing,dataset,utils}.py is read). TASKS is
# KernelBench as JSON lines, or its folder of level1/, level2/ (KERNELBENCH/KernelBench). Needs a GPU and a python3 with
# torch and triton. OUT/table.md is the result. PEER_BUDGET_S (330) is what KernelBench may take: a share of
# $MIXED_SHARE (0.5) for the mixed stream, the rest for the correct candidates. $STREAM (480) is the length of the mixed stream,
# $SEED (0) the order of KernelBench's sample.
set -euo pipefail
build=$(realpath "$1") kernelbench=$(realpath "$2") tasks=$(realpath "$3") budget=${5:-330}
mkdir -p "$4"
out=$(realpath "$4")
cd "$(dirname "$0")"
python=${PYTHON:-python3}
rm -f "$out"/peer_*.jsonl
"$python" make_verifier_stream.py "$tasks" "$out" --stream "${STREAM:-480}"
ours() { "$python" compare_kernelbench.py ours "$build" "$@" || true; }
peer() { "$python" peer_kernelbench.py "$kernelbench" "$out/candidates.jsonl" "$@"; }
for _ in 1 2; do ours "$out/mixed.jobs.jsonl" "$out/start.jsonl" --no-code; done  # The first reads everything from the disk.
ours "$out/mixed.jobs.jsonl" "$out/mixed.jsonl"
ours "$out/correct.jobs.jsonl" "$out/correct.jsonl"
ours "$out/correct.jobs.jsonl" "$out/correct_alone.jsonl" --workers 1
for workers in 16 4 1; do
  ours "$out/mixed.jobs.jsonl" "$out/workers_$workers.jsonl" --workers $workers --first "${SCALING:-96}" --limit 60
done
peer "$out/peer_warm.jsonl" --set correct --first 1 --dry-run  # Reads torch from the disk once.
peer "$out/peer_mixed.jsonl" --seed "${SEED:-0}" --budget "$("$python" -c "print($budget * ${MIXED_SHARE:-0.5})")"
peer "$out/peer_correct.jsonl" --seed "${SEED:-0}" --set correct --budget "$("$python" -c "print($budget * (1 - ${MIXED_SHARE:-0.5}))")"
ours "$out/mixed.jobs.jsonl" "$out/subset.jsonl" --ids-of "$out/peer_mixed.jsonl"
"$python" compare_kernelbench.py table "$out" "$kernelbench" | tee "$out/table.md"
