#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds bench_timing offline on a GPU machine and runs it: dev/gpu_timing.sh PREFIX OUT [ARGUMENTS of bench_timing ...]
#
# PREFIX as for dev/gpu_check.sh. OUT/timing.txt holds everything; the last lines are printed.
set -uo pipefail
cd "$(dirname "$0")/.."
prefix=$PWD/$1 out=$2
shift 2
python=$(command -v python3)
build=/tmp/build
[ -d "$prefix/whl" ] && "$python" -m pip install -q --no-index --no-deps --force-reinstall "$prefix"/whl/*.whl 2>&1 | tail -n 1
cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Release -DTRITONRL_BENCH=ON -DTRITONRL_DEPS="$prefix" \
  -DTRITONRL_PYTHON="$python" >"$out/cmake.log" 2>&1 || { tail -n 20 "$out/cmake.log"; exit 1; }
time ninja -C $build -j"$(nproc)" bench_timing >"$out/build.log" 2>&1 ||
  { grep -E "error|FAILED" "$out/build.log" | head -n 20; exit 1; }
time timeout "${LIMIT:-200}" $build/bench/bench_timing "$@" >"$out/timing.txt" 2>"$out/timing.err"
tail -n 5 "$out/timing.err"
grep -vE "^\\{" "$out/timing.txt" | cut -c 1-400
