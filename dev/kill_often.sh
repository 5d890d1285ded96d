#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Kills a tiny training run on the CPU at random moments (20, or as many as the first argument says), goes on each time,
# and holds steps, rollouts, adapters and optimizer against those of a run that was never killed, bit for bit.
set -euo pipefail
cd "$(dirname "$0")/.."
ninja -C build/release safety_test
export TRITONRL_KILLS=${1:-20} OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
exec build/release/tests/safety_test --gtest_filter='Safety.KilledAtRandomMoments*'
