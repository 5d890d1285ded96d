#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Collects what a machine without a network lacks, so that tritonrl can be built there:
#
#   tools/make_offline_prefix.sh FOLDER           here, after tools/setup.sh
#   cmake -S . -B build -DTRITONRL_DEPS=FOLDER -DTRITONRL_PYTHON=$(which python3)       there
#
# The other machine needs a compiler, CMake, Ninja, CLI11, fmt, spdlog, yaml-cpp, nlohmann-json, GoogleTest, and a Python
# with the torch and triton of tools/requirements.txt. The folder holds headers and static libraries of the rest, the
# Python grammar and the reader of GGUF: about 16 MB. The model is not in it (models/ is carried apart).
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# = 1 ] || { echo "usage: tools/make_offline_prefix.sh FOLDER" >&2; exit 2; }
to=$1
[ -e .deps/pkg ] || { echo "make_offline_prefix: run tools/setup.sh first" >&2; exit 3; }
mkdir -p "$to/include" "$to/lib" "$to/pkg"
for header in pcre2.h utf8proc.h seccomp.h seccomp-syscalls.h xxhash.h xxh3.h httplib.h; do
  [ -e /usr/include/$header ] && cp /usr/include/$header "$to/include/"
done
cp -r /usr/include/openssl /usr/include/gloo "$to/include/"
cp /usr/include/"$(gcc -print-multiarch)"/openssl/* "$to/include/openssl/"
libs=$(dirname "$(find /usr/lib -name libpcre2-8.a | head -n 1)")
for library in pcre2-8 utf8proc seccomp crypto; do cp "$libs/lib$library.a" "$to/lib/"; done
cp -r .deps/pkg/tree-sitter-python .deps/pkg/gguf "$to/pkg/"
mkdir -p "$to/pkg/tree-sitter/tree_sitter/core"
cp -r .deps/pkg/tree-sitter/tree_sitter/core/lib "$to/pkg/tree-sitter/tree_sitter/core/"
du -sh "$to"
