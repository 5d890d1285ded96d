#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What is run by hand, most of it on a GPU machine: dev/gpu.sh VERB [ARGUMENTS ...]. `dev/gpu.sh help VERB` tells all about one.
#
# Every verb builds what it runs. Paths are relative to the clone. Its environment:
#   PREFIX  folder of tools/make_offline_prefix.sh, for a machine without a network (with a numpy wheel in PREFIX/whl where the
#           machine's numpy is too new for Triton's interpreter); without it, .deps of tools/setup.sh is used
#   BUILD   build folder (/tmp/build), in which a second call finds what the first one built
#   OUT     what is to be kept (/tmp/gpu): logs, verdicts, runs
#   LIMIT   seconds after which the verb's longest command is stopped (560)

set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-/tmp/build} out=${OUT:-/tmp/gpu}

tables() { python3 dev/tables.py "$@"; }
limited() { timeout "${LIMIT:-560}" "$@"; }

compile() {  # compile TARGET ...
  local options=()
  mkdir -p "$out"
  [[ "$*" != *bench_* ]] || options+=(-DTRITONRL_BENCH=ON)
  [ ! -d "${PREFIX:-}/whl" ] || python3 -m pip install -q --no-index --no-deps --force-reinstall "$PREFIX"/whl/*.whl 2>&1 | tail -n 1
  [ -z "${PREFIX:-}" ] || options+=(-DTRITONRL_DEPS="$(realpath "$PREFIX")" -DTRITONRL_PYTHON="$(command -v python3)")
  cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release "${options[@]}" >"$out/cmake.log" 2>&1 ||
    { tail -n 20 "$out/cmake.log"; exit 1; }
  time ninja -C "$build" -j"$(nproc)" "$@" >"$out/build.log" 2>&1 || { grep -E "error|FAILED" "$out/build.log" | head -n 20; exit 1; }
}

compile_program() { compile tritonrl tritonrl_judge tritonrl_replay; }

import_model() {  # Sets model: MODEL itself if it is a folder, else what its GGUF file is imported to.
  model=$1
  [ -d "$model" ] && return
  model=/tmp/models/$(basename "$1" .gguf)
  [ -f "$model/config.json" ] || "$build/tritonrl" model import "$1" "$model"
}

verify_batch() {  # verify_batch NAME [ARGUMENTS of tritonrl verify ...]: OUT/NAME_jobs.jsonl to OUT/NAME_verdicts.jsonl
  rm -f "$out/$1_verdicts.jsonl"
  limited "$build/tritonrl" verify --batch "$out/$1_jobs.jsonl" --out "$out/$1_verdicts.jsonl" "${@:2}" >"$out/$1.log" 2>&1 ||
    { tail -n 5 "$out/$1.log"; return 1; }
}

train_run() {  # train_run NAME [ARGUMENTS of tritonrl train ...]: a run in OUT, with the same verify.seed as its peers
  exec "$build/tritonrl" train "${@:2}" --set run.folder="$out" --set run.name="$1" --set verify.seed=4294967311
}

# help [VERB]: these lines, or all about one verb
verb_help() {
  awk -v verb="${1:-}" '
    NR > 2 && /^#/ { text = text substr($0, 3) "\n"; next }
    text != "" && match($0, /^verb_[a-z]+/) {
      if (verb == "") sub(/\n.*/, "\n", text)
      if (verb == "" || substr($0, 6, RLENGTH - 5) == verb) printf "%s", text
    }
    $0 == "" && verb == "" && !told { print text; told = 1 }
    { text = "" }' dev/gpu.sh | grep '' || { echo "gpu.sh: no verb $1; dev/gpu.sh help lists them" >&2; return 2; }
}

# build [TARGET ...]: builds (without a name: everything), says what the machine has
verb_build() {
  compile "${@:-all}"
  [ ! -x "$build/tritonrl" ] || "$build/tritonrl" doctor
}

# test [ARGUMENTS of ctest ...]: the tests that use a GPU, or all that ctest is asked for (-j4: all)
# Without arguments gpu_test, verify_gpu_test and the case files are built and run; with arguments everything is built.
# OUT/ctest.log holds everything. Some tests want the quickstart's model: TRITONRL_MODEL_DIR, its folder.
verb_test() {
  local targets=(gpu_test verify_gpu_test cases_test tritonrl_judge tritonrl_replay) status=0
  if [ $# = 0 ]; then set -- -R '^(gpu_test|verify_gpu_test|cases_test|cases_every_stage_test)$'; else targets=(all); fi
  compile "${targets[@]}"
  limited ctest --test-dir "$build" -V "$@" >"$out/ctest.log" 2>&1 || status=$?
  grep -E 'Failure|FAILED|PASSED|SKIPPED|expected|verdict|Test +#|tests passed' "$out/ctest.log" | tail -n 80 || true
  return $status
}

# train MODEL NAME:ARGUMENTS ...: trains once for each NAME:ARGUMENTS
# MODEL is a folder or a GGUF file. Each NAME:ARGUMENTS, for instance "gpu:configs/gpu.yaml --set rl.steps=4", is one
# `tritonrl train` in /tmp/runs/NAME; OUT gets NAME.log and the run without its weights.
verb_train() {
  local gguf=${1:?MODEL} job name arguments failed=0
  compile_program
  import_model "$gguf"
  for job in "${@:2}"; do
    name=${job%%:*}
    echo "=== $name: ${job#*:}"
    read -ra arguments <<<"${job#*:}"
    time limited "$build/tritonrl" train "${arguments[@]}" --set policy.model="$model" --set run.folder=/tmp/runs --set run.name="$name" \
      >"$out/$name.log" 2>&1 || failed=1
    grep -E 'level|took|verified|^E|error' "$out/$name.log" | tail -n 30 || true
    tar -C /tmp/runs -czf "$out/$name.tar.gz" --exclude='*.safetensors' --exclude=tokenizer.json "$name" || failed=1
  done
  return $failed
}

# benchmark MODEL TASKS NAME [ARGUMENTS of tritonrl train ...]: trains configs/kernelbench.yaml, and answers TASKS before RL and after
# MODEL is a folder or a GGUF file, TASKS what `tritonrl data import kernelbench` made. SFT lies in /tmp/runs/NAME, RL in
# /tmp/runs/NAME_rl; RL is stopped as by hand after RL_S seconds (420; 0 = none). Each policy answers the tasks of LEVELS ("2 1") by
# the full verifier: SAMPLES times untimed (7), TIMED times timed (3; 0 = never). RL="--set rl.steps=9 ..." are arguments of RL
# alone. What is there already is not done again, so that the same command goes on; OUT gets every log and every answer as soon
# as it is there. CUDA_VISIBLE_DEVICES says which GPU.
verb_benchmark() {
  local gguf=${1:?MODEL} tasks=${2:?TASKS} name=${3:?NAME} failed=0 run policy common rl
  [ -s "$tasks" ] || { echo "gpu.sh: no tasks in $tasks" >&2; return 2; }
  compile_program
  import_model "$gguf"
  run=/tmp/runs/$name
  read -ra rl <<<"${RL:-}"
  common=(--set policy.model="$model" --set data.exclude="$tasks" --set run.folder=/tmp/runs "${@:4}")
  "$build/tritonrl" train configs/kernelbench.yaml "${common[@]}" "${rl[@]}" --dry-run >"$out/$name.yaml" || return 2
  for level in ${LEVELS:-2 1}; do
    tables level "$tasks" "$level" "/tmp/runs_$level.jsonl" || return 2
  done
  "$build/tritonrl" train configs/kernelbench.yaml "${common[@]}" --set run.name="$name" --set rl.steps=0 >>"$out/$name.log" 2>&1 ||
    { tail -n 5 "$out/$name.log"; return 1; }
  grep -E 'level|took|verified' "$out/$name.log" | tail -n 12 || true
  answer_benchmark "$name.sft" "$run/checkpoints/sft" "${common[@]}" || failed=1
  if [ "${RL_S:-420}" != 0 ]; then
    timeout --preserve-status --foreground -s INT "${RL_S:-420}" "$build/tritonrl" train configs/kernelbench.yaml "${common[@]}" \
      --set run.name="${name}_rl" --set run.start_from="$run" "${rl[@]}" >>"$out/${name}_rl.log" 2>&1 || echo "RL ended with $?"
    cp "${run}_rl/steps.jsonl" "$out/${name}_rl.steps.jsonl" || failed=1
    policy=$(find "${run}_rl/checkpoints" -maxdepth 1 -name 'rl_*' | sort -V | tail -n 1)
    [ -z "$policy" ] || answer_benchmark "$name.rl" "$policy" "${common[@]}" || failed=1
  fi
  return $failed
}

answer_benchmark() {  # answer_benchmark NAME POLICY [ARGUMENTS ...]: the tasks of each level, timed and not
  local level how answers failed=0
  for level in ${LEVELS:-2 1}; do
    for how in timed untimed; do
      [ "$how ${TIMED:-3}" != "timed 0" ] || continue
      answers=$out/$1.level$level.$how.jsonl
      [ ! -s "$answers" ] || continue
      local more=(--set eval.samples="${TIMED:-3}" --set eval.seed=5)
      [ $how = timed ] || more=(--set eval.samples="${SAMPLES:-7}" --set eval.seed=6 --set 'verify.skip_stages=[time]')
      "$build/tritonrl" eval configs/kernelbench.yaml "${@:3}" --tasks "/tmp/runs_$level.jsonl" --adapter "$2" --out "$answers" \
        --set cases.type=multi_input "${more[@]}" >"${answers%.jsonl}.log" 2>&1 || { failed=1; tail -n 3 "${answers%.jsonl}.log"; }
      echo "=== $1, level $level, $how"
      grep -E 'correct' "${answers%.jsonl}.log" | tail -n 4 || true
    done
  done
  return $failed
}

# ablate MODEL [ARGUMENTS of tritonrl ablate ...]: an ablation: of the extensions, or of MATRIX=algorithms
# MODEL is a folder or a GGUF file. MATRIX names a file of configs/ablate (extensions). Cells lie in /tmp/ablation and continue
# when the verb is run again; OUT gets ablation.json, its pages and each cell's results. One cell a GPU at a time.
verb_ablate() {
  local gguf=${1:?MODEL} matrix=${MATRIX:-extensions} status=0
  compile_program
  import_model "$gguf"
  sed "s|^folder:.*|folder: /tmp/ablation|" "configs/ablate/$matrix.yaml" >"configs/ablate/$matrix.here.yaml"
  limited "$build/tritonrl" ablate "configs/ablate/$matrix.here.yaml" --set policy.model="$model" "${@:2}" || status=$?
  cp "/tmp/ablation/$matrix"/ablation.* "$out/" || true
  tar -C /tmp/ablation -czf "$out/cells.tar.gz" --exclude='*.safetensors' --exclude=tokenizer.json --exclude=verdicts.jsonl "$matrix"
  return $status
}

# data COUNT [ARGUMENTS of tritonrl data synth ...]: makes COUNT tasks with verified solutions and says what they are
# Continues where it was stopped (/tmp/tasks.jsonl). OUT gets the verdicts, the page of `data stats` and, packed, the tasks.
verb_data() {
  local count=${1:?COUNT} tasks=/tmp/tasks.jsonl
  compile_program
  time limited "$build/tritonrl" data synth --solved "$count" --out $tasks --verify --set 'verify.skip_stages=[time]' "${@:2}" 2>&1 |
    tail -n 40 || true
  gzip -c $tasks.verdicts.jsonl >"$out/verdicts.jsonl.gz"
  gzip -c $tasks >"$out/tasks.jsonl.gz"
  "$build/tritonrl" data stats $tasks --out "$out/stats.html"
}

# overlap CONFIG [ARGUMENTS of tritonrl train ...]: what overlap brings, and whether it disturbs what is timed
# The same RL steps one thing after the other (apart), verifying while sampling (beside), sampling ahead too (ahead), and one
# after the other again; SFT is done once. Prints seconds a step by phase, and how far the times (against the reference) of
# equal answers are from those of the first run: the second sequential run shows what timing does by itself.
verb_overlap() {
  local name stream staleness start=()
  : "${1:?CONFIG}"
  compile_program
  while read -r name stream staleness; do
    (train_run "$name" "$@" "${start[@]}" --set rl.stream="$stream" --set eval.stream="$stream" --set rl.staleness="$staleness") \
      </dev/null >"$out/$name.log" 2>&1 || { tail -n 5 "$out/$name.log"; return 1; }
    start=(--set run.start_from="$out/apart")
  done <<<$'apart false 0\nbeside true 0\nahead true 1\nagain false 0'
  tables overlap "$out"
}

# recorded RUN [ARGUMENTS of tritonrl verify ...]: staged evaluation against running everything, on a run's answers
# RUN is a run directory with RL steps. Each of the two stage orders with each of the two timings, twice.
verb_recorded() {
  local run=${1:?RUN} what stages timing start
  compile_program
  tables jobs "$run" "$out/recorded_jobs.jsonl"
  for what in {1,2}\ {staged,all}\ {plain,calibrated}; do
    read -r _ stages timing <<<"$what"
    start=$(date +%s.%N)
    verify_batch recorded --config configs/gpu.yaml --set stages.type="$stages" --set timing.type="$timing" "${@:2}"
    tables recorded "$out/recorded_verdicts.jsonl" "$out/recorded.log" "$what" "$start"
  done
}

# mixed [ARGUMENTS of tritonrl verify ...]: needs no GPU: candidates a second on 100 mixed case files
verb_mixed() {
  local start
  compile_program
  tables mixed_jobs "$out/mixed_jobs.jsonl"
  start=$(date +%s.%N)
  verify_batch mixed "$@"
  tables recorded "$out/mixed_verdicts.jsonl" "$out/mixed.log" mixed "$start"
}

# resume START KILLS CONFIG ... [ARGUMENTS of tritonrl train ...]: kills a run at random moments and continues it
# On the CPU such a run equals one that was never killed bit for bit (kills); on a GPU sums depend on what else is in a batch.
# START is a run whose supervised part is taken over. Kills come AFTER (14) to AFTER + WITHIN (14) seconds behind a start.
# Prints each step's rewards of three runs: whole, again (also never killed: what chance does by itself) and killed.
verb_resume() {
  local start=${1:?START} kills=${2:?KILLS} killed=0 job after
  shift 2
  set -- "$@" --set run.start_from="$start"
  compile_program
  (train_run whole "$@") >"$out/whole.log" 2>&1
  (train_run again "$@") >"$out/again.log" 2>&1
  : >"$out/killed.log"
  while [ "$killed" -lt "$kills" ]; do
    (train_run killed "$@") >>"$out/killed.log" 2>&1 &
    job=$!
    after=$((RANDOM % ${WITHIN:-14} + ${AFTER:-14})).$((RANDOM % 10))
    sleep "$after"
    kill -9 "$job" 2>/dev/null || { echo "the run ended by itself before kill $((killed + 1))"; wait "$job" || true; break; }
    wait "$job" 2>/dev/null || true
    killed=$((killed + 1))
    echo "kill $killed after $after s: $(grep -c '"phase":"rl"' "$out/killed/steps.jsonl" 2>/dev/null || true) steps made"
  done
  (train_run killed "$@") >>"$out/killed.log" 2>&1
  tables resume "$out"
}

# kills [COUNT]: needs no GPU: a tiny run, killed at random moments (20), ends with the same bits
# Compared are steps, rollouts, adapters and optimizer. BUILD=build/release takes the build of ./test.sh.
verb_kills() {
  compile safety_test
  export TRITONRL_KILLS=${1:-20} OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
  "$(find "$build" -name safety_test -type f)" --gtest_filter='Safety.KilledAtRandomMoments*'
}

# storm [JOBS] [SECONDS]: many mixed jobs (1000), one in ten faulting, a replayer killed every SECONDS (5): verdicts as the cases say
verb_storm() {
  local jobs=${1:-1000} verifier victim kills=0 status=0
  compile_program
  tables storm_jobs "$out/storm_jobs.jsonl" "$jobs"
  verify_batch storm --set verify.tiny_deadline_s=3 &
  verifier=$!
  while kill -0 "$verifier" 2>/dev/null; do
    sleep "${2:-5}"
    victim=$(pgrep -x tritonrl_replay | shuf -n 1) || continue  # One is at work, one stands by; either may be hit.
    if kill -KILL "$victim" 2>/dev/null; then kills=$((kills + 1)); fi
  done
  wait "$verifier" || status=$?
  echo "verify --batch: exit $status, replayers killed: $kills"
  tables storm "$out/storm_verdicts.jsonl" "$jobs"
}

# stream [ARGUMENTS of tritonrl verify ...]: 400 stored answers keep their outcomes (tests/golden/verifier)
# Their expected outcomes are those of the tasks as written. Runs without a GPU, too. OUT/outcomes_gpu.json or OUT/outcomes_cpu.json are the outcomes found; exit 1 if one differs.
verb_stream() {
  local golden=tests/golden/verifier device=cpu
  [ ! -e /dev/nvidiactl ] || device=gpu
  compile_program
  tables stream_jobs $golden/stream.jsonl.xz "$out/stream_jobs.jsonl"
  verify_batch stream --set cases.type=original "$@"
  tables stream_outcomes "$out/stream_verdicts.jsonl" "$out/outcomes_$device.json"
  tables stream_compare "$out/outcomes_$device.json" $golden/outcomes_$device.json
}

# timing [ARGUMENTS of bench_timing ...]: how well candidates are timed; OUT/timing.txt holds everything
verb_timing() {
  compile bench_timing
  time limited "$build/bench/bench_timing" "$@" >"$out/timing.txt" 2>"$out/timing.err" || { tail -n 5 "$out/timing.err"; return 1; }
  grep -vE '^\{' "$out/timing.txt" | cut -c 1-400
}

# references TASKS.jsonl [ARGUMENTS of bench_references ...]: each task's reference judged against itself
verb_references() {
  : "${1:?TASKS.jsonl}"
  compile bench_references
  time limited "$build/bench/bench_references" "$@" >"$out/references.jsonl" 2>"$out/references.err" || true
  tail -n 8 "$out/references.err"
  tables references "$out/references.jsonl"
}

# cases: needs no GPU: every case file ends as it says, here
verb_cases() {
  compile cases_test tritonrl_judge tritonrl_replay
  limited "$(find "$build" -maxdepth 2 -name cases_test -type f)" --gtest_filter='Cases.*'
}

# mutants [COUNT]: needs no GPU: kernels with one fault each, from COUNT (600) synthesised tasks and the honest cases; exit 1 for a gap nobody knows
verb_mutants() {
  local folder=$out/mutants seed=(--set verify.seed=81985529216486895)
  compile_program
  mkdir -p "$folder"
  [ -f "$folder/jobs.jsonl" ] || "$build/tritonrl" data synth --count "${1:-600}" --out "$folder/synth.jsonl"
  [ -f "$folder/jobs.jsonl" ] || python3 bench/make_mutants.py make "$folder/synth.jsonl" "$folder"
  limited "$build/tritonrl" verify --batch "$folder/jobs.jsonl" --out "$folder/one.jsonl" "${seed[@]}" || [ $? = 1 ]
  limited "$build/tritonrl" verify --batch "$folder/jobs.jsonl" --out "$folder/five.jsonl" "${seed[@]}" --config configs/ablate/multi_input.yaml || [ $? = 1 ]
  while python3 bench/make_mutants.py settings "$folder" "$folder/one.jsonl" "$folder/settings.jsonl" && [ -s "$folder/settings.jobs.jsonl" ]; do
    limited "$build/tritonrl" verify --batch "$folder/settings.jobs.jsonl" --out "$folder/settings.jsonl" "${seed[@]}" || [ $? = 1 ]
  done
  python3 bench/mutants_table.py "$folder" --one "$folder/one.jsonl" --five "$folder/five.jsonl" --settings "$folder/settings.jsonl"
}

# fuzz [SECONDS]: needs clang++ and no GPU: the parsers of traces and blobs on damaged bytes, for SECONDS (60)
verb_fuzz() {
  cmake -S . -B "$build-fuzz" -G Ninja -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=None -DTRITONRL_FUZZ=ON
  ninja -C "$build-fuzz" fuzz_trace trace_seeds
  mkdir -p "$out/corpus"
  "$build-fuzz/fuzz/trace_seeds" "$out/corpus"
  limited "$build-fuzz/fuzz/fuzz_trace" -max_total_time="${1:-60}" -artifact_prefix="$out/" "$out/corpus"
}

# verifier [STEP ...]: all that holds the verifier, one step after the other: cases stream mutants fuzz timing storm
# `timing` (A/A among it) and `storm` need a GPU, `fuzz` needs clang++: where that is not there they are skipped with a message.
# OUT/verifier.jsonl has a line a step: the commit (with "+" where files differ from it), the machine, how it ended, seconds, and the
# last lines of what it said; OUT/verifier_STEP.log has all of that. Exit 1 if a step failed.
verb_verifier() {
  local step commit device why status began failed=0
  mkdir -p "$out"
  [ $# -gt 0 ] || set -- cases stream mutants fuzz timing storm
  commit=$(git rev-parse HEAD)
  [ -z "$(git status --porcelain)" ] || commit+=+
  device=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1) || true
  : >"$out/verifier.jsonl"
  for step; do
    case $step in
      cases | stream | mutants) why="" ;;
      fuzz) why=$(command -v clang++ >/dev/null || echo "needs clang++") ;;
      timing | storm) why=$([ -n "$device" ] || echo "needs a GPU") ;;
      *) echo "gpu.sh: verifier has no step $step; dev/gpu.sh help verifier" >&2; return 2 ;;
    esac
    began=$SECONDS status=passed
    if [ -n "$why" ]; then
      status=skipped
      echo "$why" >"$out/verifier_$step.log"
    elif ! bash dev/gpu.sh "$step" >"$out/verifier_$step.log" 2>&1; then
      status=failed failed=1
    fi
    tables verifier_step "$out" "$step" "$status" "$((SECONDS - began))" "$commit" "${device:-no GPU}"
  done
  return $failed
}

declare -F "verb_${1:-help}" >/dev/null || set -- help "$1"
"verb_${1:-help}" "${@:2}"
