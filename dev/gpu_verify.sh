#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the verifier offline on a GPU machine and tries it there.
#
#   dev/gpu_verify.sh PREFIX OUT TASKS.jsonl [ARGUMENTS of bench_references ...]
#
# PREFIX as for dev/gpu_build.sh. First one honest and one wrong candidate, then every case file under tests/cases, then
# the references of TASKS.jsonl judged against themselves; with TIMING=1 also bench_timing.
set -uo pipefail
cd "$(dirname "$0")/.."
. dev/gpu_build.sh
prefix=$1 out=$2 tasks=$3
shift 3
gpu_build "$prefix" "$out" tritonrl bench_references bench_timing tritonrl_judge tritonrl_replay verify_gpu_test cases_test
(cd $build && ctest -R verify_gpu_test --output-on-failure 2>&1 | tail -n 30)
for case in honest/softmax_row honest/swish_basic; do
  timeout 120 $build/tritonrl verify tests/cases/$case.py --task tests/cases/tasks/softmax.py --json >"$out/$(basename $case).json" 2>"$out/$(basename $case).err"
  echo "$case: exit $?"; head -c 1500 "$out/$(basename $case).json"; tail -n 3 "$out/$(basename $case).err"
done
[ -n "${SKIP_CASES:-}" ] || (cd $build && timeout 300 ./cases_test >"$out/cases.log" 2>&1; grep -E "Failure|FAILED|PASSED|expected|verdict" "$out/cases.log" | head -n 60)
if [ -n "${TIMING:-}" ]; then
  time timeout 200 $build/bench/bench_timing --repeats 20 --seconds 90 >"$out/timing.txt" 2>"$out/timing.err"
  tail -n 5 "$out/timing.err"
  grep -vE "^\\{" "$out/timing.txt" | cut -c 1-300
fi
time timeout "${LIMIT:-300}" $build/bench/bench_references "$tasks" "$@" >"$out/references.jsonl" 2>"$out/references.err"
tail -n 8 "$out/references.err"
"$python" - "$out/references.jsonl" <<'PY'
import collections, json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
print(len(rows), collections.Counter(row["outcome"] for row in rows))
for row in rows:
    if row["outcome"] != "pass":
        print(row["id"], row["name"], row["outcome"], row.get("message", "")[:160])
def middle(key):
    values = sorted(row[key] for row in rows if key in row)
    return f"{key}: median {values[len(values) // 2]:.4f}, p95 {values[int(len(values) * .95)]:.4f}, max {values[-1]:.4f}" if values else ""
for key in ("record_reference_s", "record_candidate_s", "run_s", "time_s", "lint_s", "ratio"):
    print(middle(key))
for row in rows:
    if row.get("flags"):
        print("lint:", row["id"], row["name"], "; ".join(": ".join(flag) for flag in row["flags"]))
if any("drops" in row for row in rows):
    print("drops tried, impossible:", [sum(row["drops"][i] for row in rows if "drops" in row) for i in (0, 1)])
print("outside of the band:", [(row["id"], round(row["ratio"], 4), round(row["band"], 4)) for row in rows if "ratio" in row and abs(row["ratio"] - 1) > row["band"]][:40])
PY
