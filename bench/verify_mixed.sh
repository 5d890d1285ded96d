#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Candidates per second of `tritonrl verify --batch` on 100 mixed case files: bench/verify_mixed.sh [BUILD].
# Half are honest, a quarter wrong, a quarter broken; cases that wait out a deadline are left out.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/release}
folder=$(mktemp -d)
python3 - "$folder/jobs.jsonl" <<'PY'
import json, pathlib, sys
root = pathlib.Path.cwd()
slow = {"infinite_loop_at_import", "infinite_loop_in_forward", "sleeps_forever", "fork_bomb"}
def pick(kind, count):
    files = sorted(p for p in (root / "tests/cases" / kind).glob("*.py")
                   if p.stem not in slow and "timeout" not in p.read_text().split("\n")[1])
    return [files[i % len(files)] for i in range(count)]
with open(sys.argv[1], "w") as out:
    for i, path in enumerate(pick("honest", 50) + pick("wrong", 25) + pick("broken", 25)):
        text = path.read_text()
        task = text.split("# task: ")[1].split("\n")[0].strip()
        text += f"\n# copy {i}\n"  # So that no two candidates are the same text.
        out.write(json.dumps({"id": str(i), "task": str(root / task), "candidate": {"text": f"```python\n{text}```\n"}}) + "\n")
PY
"$build/tritonrl" doctor >/dev/null 2>&1 || true
start=$(date +%s.%N)
"$build/tritonrl" verify --batch "$folder/jobs.jsonl" --out "$folder/verdicts.jsonl"
end=$(date +%s.%N)
python3 - "$folder/verdicts.jsonl" "$start" "$end" <<'PY'
import collections, json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
seconds = float(sys.argv[3]) - float(sys.argv[2])
print(f"{len(rows)} candidates in {seconds:.1f} s with start-up: {len(rows) / seconds:.2f} candidates/s")
print(dict(collections.Counter(r["outcome"] for r in rows)))
PY
