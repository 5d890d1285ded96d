// SPDX-License-Identifier: Apache-2.0
// Every reference of a task file recorded, replayed and judged against itself: bench_references TASKS.jsonl [options].
//
// TASKS.jsonl: lines with "code" and "level", "problem_id", "name" (KernelBench's columns). Prints a JSON line a task:
// outcome, seconds to record, to replay and judge on each seed, and (--time) the ratio to itself, which should be 1.
#include <CLI/CLI.hpp>
#include <iostream>
#include <mutex>
#include <thread>

#include "base/files/json_fields.h"
#include "base/log.h"
#include "base/parallel.h"
#include "base/process/build_paths.h"
#include "base/text.h"
#include "ext/calibrated_timing/calibrated_timing.h"
#include "verify/execute/execution.h"
#include "verify/execute/replay_executor.h"
#include "verify/sandbox/sandbox.h"
#include "verify/verifier.h"

namespace tritonrl {
namespace {

struct Row {
  Task task;
  Json out;
};

std::unique_ptr<ForkServerPool> open_pool() {
  SandboxFiles files = find_sandbox_files();
  std::filesystem::path worker = source_dir() + "/worker";
  return ForkServerPool::open([=](ForkServerKind kind) {
    return spawn_fork_server(jail_command(files, false, python_program(), {worker},
                                          {"-I", "-B", (worker / "broker.py").string(), "--mode", to_string(kind),
                                           "--sandbox-library", std::filesystem::canonical(files.library).string()}));
  });
}

Finding record(ForkServerPool& pool, Json args, Blob* blob) {
  Job job{"record", std::move(args), ""};
  job.deadline_s = 120;
  job.memory_bytes = int64_t{4} << 30;
  JobAnswer answer = pool.run(ForkServerKind::kRecord, std::move(job));
  auto parsed = parse_blob(std::move(answer.result), answer.nonce);
  if (!parsed) return {Rule::kVerifierFailed, cat(parsed.why, " ", answer.stderr_tail)};
  if (parsed.value->failure) return *parsed.value->failure;
  *blob = std::move(*parsed.value);
  return {};
}

int run(int argc, char** argv) {
  CLI::App app{"References judged against themselves"};
  std::string file, device = "cuda:0", timing = "calibrated";
  std::vector<int> levels;
  bool time = false, record_only = false, lint = false;
  int64_t seeds = 1, workers = 0;
  app.add_option("tasks", file)->required();
  app.add_option("--levels", levels, "which levels (all when left out)");
  app.add_option("--device", device, "cuda:0, or cpu");
  app.add_option("--seeds", seeds, "secret inputs for each");
  app.add_option("--workers", workers, "recorders at a time; 0 = one per core");
  app.add_option("--timing", timing, "protocol of --time")->check(CLI::IsMember({"plain", "calibrated"}));
  app.add_flag("--time", time);
  app.add_flag("--record-only", record_only);
  app.add_flag("--lint", lint, "which wrong answers would pass");
  CLI11_PARSE(app, argc, argv);

  std::vector<Row> rows;
  for_each_json_line(file, [&](int64_t, const Json& json) {
    Row row;
    row.task.level = json.value("level", 1);
    if (!levels.empty() && std::find(levels.begin(), levels.end(), row.task.level) == levels.end()) return;
    row.task.id = cat("L", row.task.level, "/", json.value("problem_id", 0));
    row.task.source = json.at("code").get<std::string>();
    row.out = {{"id", row.task.id}, {"name", json.value("name", "")}};
    rows.push_back(std::move(row));
  });
  auto pool = open_pool();
  std::unique_ptr<JudgeSlots> slots;
  std::shared_ptr<const TimingProtocol> protocol = std::make_shared<calibrated_timing::CalibratedTiming>();
  if (timing == "plain") protocol = std::make_shared<PlainMean>();
  if (!record_only) slots = JudgeSlots::open({{device}, time ? protocol : nullptr});
  ReferenceCache references(*pool, 120, int64_t{4} << 30);
  ExecutionTools tools{slots.get(), &references, protocol.get(),
                       [&] { return std::make_unique<ReplayExecutor>(*slots); }};
  std::mutex mutex;
  double start = now_s();
  auto count = workers > 0 ? workers : static_cast<int64_t>(std::thread::hardware_concurrency());
  parallel_for(rows.size(), count, [&](size_t i) {
    Row& row = rows[i];
    double began = now_s();
    auto reference = references.ask(row.task, {{"full", {}, false, seeds}}, 77);
    row.out["record_reference_s"] = now_s() - began;
    Finding ended;
    if (!reference->failure.empty()) ended = {Rule::kReferenceFailed, reference->failure};
    if (ended.passed() && !record_only) {
      Execution path(tools, row.task, {{"full", {}, false, seeds}}, {77, 78}, Rng(1).at(row.task.id), Rng(2));
      began = now_s();
      ended = path.record(row.task.source + "\n\nclass ModelNew(Model):\n    pass\n",
                          [&](Json args, Blob* blob) { return record(*pool, std::move(args), blob); });
      row.out["record_candidate_s"] = now_s() - began;
      if (ended.passed()) {
        ended = path.begin();
        began = now_s();
        if (ended.passed()) ended = path.full_run(120, false);
        row.out["run_s"] = now_s() - began;
      }
      if (ended.passed() && time) {
        began = now_s();
        ended = path.time(120);
        row.out["time_s"] = now_s() - began;
        if (path.timing()) row.out.update(json_of(*path.timing()));
      }
    }
    if (ended.passed() && lint) {
      Execution path(tools, row.task, {{"full", {}, false, seeds}}, {77, 78}, Rng(1).at(row.task.id), Rng(2));
      TaskFindings found;
      began = now_s();
      ended = path.lint(30, &found);
      row.out["lint_s"] = now_s() - began;
      row.out["flags"] = found.flags;
      row.out["drops"] = {found.drops_tried, found.drops_impossible};
    }
    row.out["outcome"] = to_string(ended.outcome());
    if (!ended.passed()) row.out["message"] = human_text(ended).substr(0, 300);
    std::lock_guard lock(mutex);
    std::cout << row.out.dump() << std::endl;
  });
  int64_t passed = 0;
  for (const Row& row : rows) passed += row.out.value("outcome", "") == "pass";
  std::cerr << passed << " of " << rows.size() << " passed in " << human_seconds(now_s() - start) << "\n";
  if (slots) {
    const DeviceInfo& info = slots->info(0);
    std::cerr << info.name << ", " << info.bandwidth / 1e12 << " TB/s, noise:";
    for (const auto& [seconds, band] : info.noise) std::cerr << " " << seconds * 1e6 << " us " << band * 100 << " %;";
    std::cerr << "\n";
  }
  return passed == static_cast<int64_t>(rows.size()) ? 0 : 1;
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) { return tritonrl::run(argc, argv); }
