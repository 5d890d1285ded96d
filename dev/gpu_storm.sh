#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A storm: many mixed jobs through `tritonrl verify --batch` on a GPU, a share of them faulting, while replayers are
# killed at random; every verdict must be what the case's file says.
#
#   dev/gpu_storm.sh BUILD OUT [JOBS] [SECONDS BETWEEN KILLS]
set -uo pipefail
build=$(realpath "$1") out=$(realpath "$2") jobs=${3:-1000} between=${4:-5}
cd "$(dirname "$0")/.."
python3 - "$out" "$jobs" <<'PY'
import json, pathlib, random, sys
out, jobs = pathlib.Path(sys.argv[1]), int(sys.argv[2])
root = pathlib.Path.cwd()
def head(text, key):
    lines = [line for line in text.split("\n")[:5] if line.startswith(f"# {key}:")]
    return lines[0].split(":", 1)[1].strip() if lines else ""
faulting = {"infinite_kernel", "illegal_address", "far_out_of_bounds", "huge_allocation", "device_print_flood", "huge_grid",
            "prints_forever", "kills_parent"}
cases = {"fault": [], "rest": []}
for path in sorted((root / "tests/cases").glob("*/*.py")):
    if path.parent.name == "tasks":
        continue
    text = path.read_text()
    expect = head(text, "expect-gpu") or head(text, "expect").replace("pass @full_run", "pass @time")
    if "timeout @compile" in expect or " or " in expect:
        continue  # Waits for the deadline, or is left to luck.
    bad = "timeout" in expect or "@tiny_run" in expect and ("runtime_error" in expect or "out_of_memory" in expect)
    cases["fault" if bad or path.stem in faulting else "rest"].append((path, text, head(text, "task"), expect))
random.seed(1)
print({kind: len(items) for kind, items in cases.items()}, sorted({p.stem for p, *_ in cases["fault"]}))
with open(out / "storm_jobs.jsonl", "w") as file:
    for i in range(jobs):
        path, text, task, expect = random.choice(cases["fault" if i % 10 == 0 else "rest"])
        file.write(json.dumps({"id": f"{i}|{path.parent.name}/{path.stem}|{expect}", "task": str(root / task),
                               "candidate": {"text": f"```python\n{text}\n# copy {i}\n```\n"}}) + "\n")
PY
"$build/tritonrl" verify --set verify.tiny_deadline_s=3 --batch "$out/storm_jobs.jsonl" --out "$out/storm_verdicts.jsonl" >"$out/storm.log" 2>&1 &
verifier=$!
kills=0
while kill -0 $verifier 2>/dev/null; do
  sleep "$between"
  # One is at work, one stands by; kill either.
  victim=$(pgrep -x tritonrl_replay | shuf -n 1) && kill -KILL "$victim" 2>/dev/null && kills=$((kills + 1))
done
wait $verifier
echo "verify --batch: exit $?, replayers killed: $kills"
python3 - "$out/storm_verdicts.jsonl" "$jobs" <<'PY'
import collections, json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
wrong = []
for row in rows:
    _, name, expect = row["candidate_id"].split("|") if "candidate_id" in row else row["id"].split("|")
    got = f"{row['outcome']} @{row['stopped_at']}"
    if got not in expect.split(" or "):
        wrong.append((name, got, expect, next((s["message"] for s in row["stages"] if s.get("message")), "")[:120]))
print(f"{len(rows)} of {sys.argv[2]} verdicts, {len(wrong)} other than the file says")
for key, count in collections.Counter(wrong).most_common(20):
    print(count, *key, sep=" | ")
print(dict(collections.Counter(row["outcome"] for row in rows)))
PY
