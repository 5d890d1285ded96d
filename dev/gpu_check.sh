#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds offline on a GPU machine, runs the tests there, then trains with the given configs on the GPU.
#
#   dev/gpu_check.sh PREFIX GGUF OUT [NAME:ARGUMENTS ...]
#
# PREFIX as for dev/gpu_build.sh. Each NAME:ARGUMENTS is one `tritonrl train` into OUT/NAME.
set -uo pipefail
cd "$(dirname "$0")/.."
. dev/gpu_build.sh
prefix=$1 gguf=$2 out=$3
shift 3
gpu_build "$prefix" "$out" -k0 all
[ -d models/smollm2-135m-instruct ] || $build/tritonrl model import "$gguf" models/smollm2-135m-instruct
$build/tritonrl doctor
if [ ! -e /tmp/tested ]; then
  (cd $build && ctest -j4 --output-on-failure >"$out/ctest.log" 2>&1; tail -n 12 "$out/ctest.log"); touch /tmp/tested
fi
for job in "$@"; do
  name=${job%%:*}
  echo "=== $name: ${job#*:}"
  # shellcheck disable=SC2086
  time $build/tritonrl train ${job#*:} --set run.folder=/tmp/runs --set run.name="$name" >"$out/$name.log" 2>&1
  grep -E 'level|took|verified|^E|error' "$out/$name.log" | tail -n 30
  tar -czf "$out/$name.tar.gz" --exclude='*.safetensors' --exclude='tokenizer.json' -C /tmp/runs "$name" 2>/dev/null
done
