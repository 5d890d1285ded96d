#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How long a cold build takes here, without a compiler cache: tools/time_build.sh [TARGET ...] (tritonrl; all: with tests).
#
# Builds into build/cold, which goes again afterwards. Prints the wall time and the core-seconds of each target.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- tritonrl
folder=build/cold
rm -rf $folder
cmake --preset release -B $folder >/dev/null
start=$(date +%s)
CCACHE_DISABLE=1 ninja -C $folder --quiet "$@"
echo "$*: $(($(date +%s) - start)) s on $(nproc) cores"
awk 'NR > 1 { split($4, part, "/"); name = part[1] == "CMakeFiles" ? part[2] : $4; sub(/\.dir$/, "", name); time[name] += ($2 - $1) / 1000; all += ($2 - $1) / 1000 }
  END { for (name in time) if (time[name] >= 1) printf "%7.0f core-seconds  %s\n", time[name], name; printf "%7.0f core-seconds  in all\n", all }' \
  $folder/.ninja_log | sort -rn
rm -rf $folder
