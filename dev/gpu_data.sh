#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds offline on a GPU machine and makes COUNT tasks with verified solutions there, then says what they are.
#
#   dev/gpu_data.sh PREFIX OUT COUNT [ARGUMENTS of tritonrl data synth ...]
#
# PREFIX as for dev/gpu_build.sh. Goes on where it was stopped (/tmp/tasks.jsonl). OUT gets the verdicts, the page of
# `data stats` and, packed, the tasks.
set -uo pipefail
cd "$(dirname "$0")/.."
. dev/gpu_build.sh
prefix=$1 out=$2 count=$3
shift 3
gpu_build "$prefix" "$out" tritonrl tritonrl_judge tritonrl_replay
time timeout "${LIMIT:-420}" $build/tritonrl data synth --solved "$count" --out /tmp/tasks.jsonl --verify --set 'verify.skip_stages=[time]' "$@" 2>&1 | tail -n 40
wc -l /tmp/tasks.jsonl* 2>/dev/null
gzip -c /tmp/tasks.jsonl.verdicts.jsonl >"$out/verdicts.jsonl.gz"
[ -f /tmp/tasks.jsonl ] || exit 1
gzip -c /tmp/tasks.jsonl >"$out/tasks.jsonl.gz"
$build/tritonrl data stats /tmp/tasks.jsonl --out "$out/stats.html"
