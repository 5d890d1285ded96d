#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds offline on a GPU machine and runs the ablation of the four extensions there.
#
#   dev/gpu_ablation.sh PREFIX MODEL.gguf OUT [ARGUMENTS of tritonrl ablate ...]
#
# PREFIX as for dev/gpu_check.sh. Cells lie in /tmp/ablation and go on when the script is run again; OUT gets ablation.json,
# its pages and each cell's results. One cell a GPU at a time.
set -uo pipefail
cd "$(dirname "$0")/.."
prefix=$PWD/$1 gguf=$2 out=$3
shift 3
python=$(command -v python3)
build=/tmp/build
[ -d "$prefix/whl" ] && "$python" -m pip install -q --no-index --no-deps --force-reinstall "$prefix"/whl/*.whl 2>&1 | tail -n 1
if [ ! -x $build/tritonrl ]; then
  cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Release -DTRITONRL_DEPS="$prefix" -DTRITONRL_PYTHON="$python" >"$out/cmake.log" 2>&1 ||
    { tail -n 20 "$out/cmake.log"; exit 1; }
  ninja -C $build -j"$(nproc)" tritonrl tritonrl_judge tritonrl_replay >"$out/build.log" 2>&1 ||
    { grep -E "error|FAILED" "$out/build.log" | head -n 20; exit 1; }
fi
model=/tmp/model
[ -f $model/config.json ] || $build/tritonrl model import "$gguf" $model
sed "s|^folder:.*|folder: /tmp/ablation|; s|\[\.\./|[$PWD/configs/|; s| \([a-z_]*\.yaml\)| $PWD/configs/ablate/\1|g" \
  configs/ablate/extensions.yaml >/tmp/extensions.yaml
timeout "${LIMIT:-560}" $build/tritonrl ablate /tmp/extensions.yaml --set policy.model=$model "$@"
status=$?
cp /tmp/ablation/extensions/ablation.* "$out/" 2>/dev/null
tar -C /tmp/ablation -czf "$out/cells.tar.gz" --exclude="*.safetensors" --exclude=tokenizer.json --exclude='*.out' extensions 2>/dev/null
exit $status
