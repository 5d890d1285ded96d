# SPDX-License-Identifier: Apache-2.0
# Sourced by the other dev/gpu_*.sh: builds offline on a GPU machine, in /tmp/build, where a second call finds it again.
#
#   gpu_build PREFIX OUT TARGET ...
#
# PREFIX comes from tools/make_offline_prefix.sh (with a numpy wheel in PREFIX/whl where the machine's numpy is too new
# for Triton's interpreter). Logs go to OUT. Sets build and python; ends the script when the build fails.
build=/tmp/build
python=$(command -v python3)

gpu_build() {
  local prefix out
  prefix=$(realpath "$1") out=$2
  shift 2
  [ -d "$prefix/whl" ] && "$python" -m pip install -q --no-index --no-deps --force-reinstall "$prefix"/whl/*.whl 2>&1 | tail -n 1
  cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Release -DTRITONRL_TESTS=ON -DTRITONRL_BENCH=ON -DTRITONRL_DEPS="$prefix" \
    -DTRITONRL_PYTHON="$python" >"$out/cmake.log" 2>&1 || { tail -n 20 "$out/cmake.log"; exit 1; }
  time ninja -C $build -j"$(nproc)" "$@" >"$out/build.log" 2>&1 || { grep -E "error|FAILED" "$out/build.log" | head -n 20; exit 1; }
}
