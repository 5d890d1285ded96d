#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Ours beside transformers + PEFT, one after the other in one run, twice: bench/compare_transformers.sh [MODEL_FOLDER].
# Needs tools/setup.sh --dev and the preset `bench`.
set -euo pipefail
cd "$(dirname "$0")/.."
model=${1:-models/smollm2-135m-instruct}
python=${PYTHON:-.deps/venv/bin/python}
build=${BUILD:-build/bench}
lines=$(mktemp)
for _ in 1 2; do
  for what in sft gen1 gen16 gen64; do
    "$build/bench/bench_model" "$model" $what | tee -a "$lines" >&2
    "$python" bench/peer_transformers.py "$model" $what 2>/dev/null | tee -a "$lines" >&2
  done
done
"$python" - "$lines" <<'PY'
import json, sys
best = {}
for line in open(sys.argv[1]):
    r = json.loads(line)
    key = (r["what"], r["who"])
    best[key] = max(best.get(key, 0), r["tokens_per_s"])
print("| tokens/s | tritonrl | transformers + PEFT | ratio |\n|---|---|---|---|")
for what, name in (("sft", "SFT step, 4 x 400 tokens"), ("gen1", "generation, batch 1"), ("gen16", "generation, batch 16"), ("gen64", "generation, batch 64")):
    a, b = best[what, "tritonrl"], best[what, "transformers"]
    print(f"| {name} | {a:.0f} | {b:.0f} | {a / b:.2f} |")
PY
