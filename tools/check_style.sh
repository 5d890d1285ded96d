#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Holds the C++ sources against .clang-format and .clang-tidy, with the versions that tools/setup.sh fetched.
#
#   tools/check_style.sh [--format]     --format: the layout only, which takes a second; --fix: lays every file out
#
# (-fno-openmp: clang comes without omp.h.) clang-tidy reads the batches that build/release compiles (all rooms, not the tests): two to four minutes on two cores.
set -euo pipefail
cd "$(dirname "$0")/.."
mapfile -t sources < <(git ls-files --cached --others --exclude-standard '*.cpp' '*.h' '*.cu' '*.cuh')
format=.deps/pkg/clang-format/clang_format/data/bin/clang-format
if [ "${1:-}" = --fix ]; then exec $format -i "${sources[@]}"; fi
$format --dry-run -Werror "${sources[@]}" || { echo "check_style: tools/check_style.sh --fix lays these files out" >&2; exit 1; }
[ "${1:-}" = --format ] && exit 0
build=build/release
[ -f $build/compile_commands.json ] || { echo "check_style: build first (cmake --preset release)" >&2; exit 2; }
ls $build/batches/*.cpp | grep -v _test_ |
  xargs -P "$(nproc)" -n 1 .deps/pkg/clang-tidy/clang_tidy/data/bin/clang-tidy -p $build --quiet --extra-arg=-fno-openmp 2>/dev/null
