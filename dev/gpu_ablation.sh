#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds offline on a GPU machine and runs an ablation there: of the four extensions, or MATRIX=algorithms.
#
#   dev/gpu_ablation.sh PREFIX MODEL.gguf OUT [ARGUMENTS of tritonrl ablate ...]
#
# PREFIX as for dev/gpu_build.sh. Cells lie in /tmp/ablation and go on when the script is run again; OUT gets ablation.json,
# its pages and each cell's results. One cell a GPU at a time.
set -uo pipefail
cd "$(dirname "$0")/.."
. dev/gpu_build.sh
prefix=$1 gguf=$2 out=$3 matrix=${MATRIX:-extensions}
shift 3
gpu_build "$prefix" "$out" tritonrl tritonrl_judge tritonrl_replay
model=/tmp/model
[ -f $model/config.json ] || $build/tritonrl model import "$gguf" $model
sed "s|^folder:.*|folder: /tmp/ablation|" "configs/ablate/$matrix.yaml" >"configs/ablate/$matrix.here.yaml"
timeout "${LIMIT:-560}" $build/tritonrl ablate "configs/ablate/$matrix.here.yaml" --set policy.model=$model "$@"
status=$?
cp /tmp/ablation/$matrix/ablation.* "$out/" 2>/dev/null
tar -C /tmp/ablation -czf "$out/cells.tar.gz" --exclude="*.safetensors" --exclude=tokenizer.json --exclude=verdicts.jsonl "$matrix" 2>/dev/null
exit $status
