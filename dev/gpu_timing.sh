#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds bench_timing offline on a GPU machine and runs it: dev/gpu_timing.sh PREFIX OUT [ARGUMENTS of bench_timing ...]
#
# PREFIX as for dev/gpu_build.sh. OUT/timing.txt holds everything; the last lines are printed.
set -uo pipefail
cd "$(dirname "$0")/.."
. dev/gpu_build.sh
prefix=$1 out=$2
shift 2
gpu_build "$prefix" "$out" bench_timing
time timeout "${LIMIT:-200}" $build/bench/bench_timing "$@" >"$out/timing.txt" 2>"$out/timing.err"
tail -n 5 "$out/timing.err"
grep -vE "^\\{" "$out/timing.txt" | cut -c 1-400
