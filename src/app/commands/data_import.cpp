// SPDX-License-Identifier: Apache-2.0
// data import and data label: other people's tasks, and what their traces say about them.
#include <algorithm>
#include <iomanip>
#include <iostream>

#include "app/commands/commands.h"
#include "app/commands/commands_data.h"
#include "app/config.h"
#include "base/log.h"
#include "base/parallel.h"
#include "base/process/interrupt.h"
#include "data/import/import_job.h"
#include "verify/solve/recorded_graph.h"
#include "verify/trace/trace_graph.h"

namespace tritonrl {

namespace fs = std::filesystem;

std::unique_ptr<Verifier> open_verifier(const ConfigArguments& arguments, int64_t workers) {
  VerifyConfig config = arguments.load().verify;
  if (workers > 0) config.workers = workers;
  return Verifier::open(config);
}

void for_each_task(const Verifier& verifier, const std::string& what, size_t count,
                   const std::function<void(size_t)>& fn) {
  Progress bar("data: " + what, static_cast<int64_t>(count), "tasks");
  std::mutex mutex;
  int64_t done = 0;
  parallel_for(count, verifier.workers(), [&](size_t i) {
    if (interrupted()) return;
    fn(i);
    std::lock_guard lock(mutex);
    bar.update(++done);
  });
  if (interrupted()) throw Interrupted();
}

// Fills task.recorded. "" or why the reference cannot be recorded.
std::string record_task(Verifier& verifier, Task* task) {
  auto reference = verifier.record(*task);
  if (!reference->failure.empty()) return clean_message(reference->failure);
  task->recorded = describe(*reference->file.find("full"));
  Computed computed = computed_by(reference->file);
  task->recorded.outline = computed.outline;
  task->recorded.operators = computed.operators;
  return "";
}

namespace {

struct ImportArguments {
  ConfigArguments config;
  std::string in, out;
  bool verify = false, record = true, overwrite = false;
};

void set_kind(Converted* converted, const std::string& kind, const std::string& reason) {
  converted->task.reset();
  converted->kind = kind;
  converted->reason = reason;
}

// Records each reference and labels its task; `strict`: a task that cannot be recorded is rejected, else flagged.
void record_all(Verifier& verifier, std::vector<Converted>& window, bool strict, bool relabel) {
  parallel_for(window.size(), verifier.workers(), [&](size_t i) {
    Converted& one = window[i];
    if (!one.task || interrupted()) return;
    std::string problem = record_task(verifier, &*one.task);
    if (problem.empty()) {
      if (relabel) one.task->level = one.task->recorded.level;
    } else if (strict) {
      set_kind(&one, "unrecordable", problem);
    } else {
      one.task->flags.push_back("unrecordable");
    }
  });
}

// Keeps the tasks whose solution is correct. Those without a solution have their reference recorded, no more.
void verify_all(Verifier& verifier, std::vector<Converted>& window) {
  std::vector<const Task*> tasks;
  std::vector<size_t> index;
  for (size_t i = 0; i < window.size(); ++i) {
    if (!window[i].task || window[i].task->solution.empty()) continue;
    tasks.push_back(&*window[i].task);
    index.push_back(i);
  }
  std::vector<Verdict> verdicts = verifier.verify_solutions(tasks);
  for (size_t i = 0; i < verdicts.size(); ++i) {
    if (!verdicts[i].correct()) set_kind(&window[index[i]], to_string(verdicts[i].outcome), verdicts[i].reason());
  }
}

int import(const ImportArguments& a, const std::string& format) {
  fs::path in = a.in;
  bool folder = fs::is_directory(in);
  if (folder && format != "kernelbench") throw usage_error("is a folder, not a file", a.in);
  auto rows = folder ? open_kernelbench_folder(in) : open_rows(in);
  Converter convert = format == "kernelbook"    ? convert_kernelbook
                      : format == "kernelbench" ? convert_kernelbench
                                                : convert_pair;
  ImportOptions options;
  options.out = a.out;
  options.overwrite = a.overwrite;
  std::string stamp = folder ? "" : cat(fs::file_size(in), " ", fs::last_write_time(in).time_since_epoch().count());
  options.identity = cat(format, " ", fs::canonical(in).string(), " ", stamp, " ", a.verify, a.record);
  std::unique_ptr<Verifier> verifier;
  if (a.record || a.verify) verifier = open_verifier(a.config);
  bool own_levels = format == "kernelbench";  // Stay as given.
  auto judge = [&](std::vector<Converted>& window) {
    if (a.record) record_all(*verifier, window, !own_levels, !own_levels);
    if (a.verify && !interrupted()) verify_all(*verifier, window);
  };
  double last = now_s();
  ImportCounts counts = run_import(*rows, convert, verifier ? ImportJudge(judge) : ImportJudge(), options,
                                   [&](const ImportCounts& so_far) {
                                     if (now_s() - last < 10) return;
                                     last = now_s();
                                     log_info(cat("import: ", so_far.rows, " rows, ", so_far.kept, " kept"));
                                   });
  std::cout << counts.rows << " rows, " << counts.kept << " kept";
  if (counts.resumed_at > 0) std::cout << " (" << counts.resumed_at << " rows were done before)";
  for (const auto& [kind, count] : counts.kinds) std::cout << "\n  " << std::setw(7) << count << " rejected: " << kind;
  std::cout << "\ntasks:    " << a.out << "\nrejected: " << rejected_file(a.out).string() << "\n";
  return counts.kept > 0 || counts.rows == 0 ? 0 : 1;
}

// A square table of given against recorded levels.
void print_agreement(const std::vector<Task>& tasks) {
  std::map<int, std::map<int, int64_t>> table;
  int64_t same = 0, recorded = 0;
  for (const Task& task : tasks) {
    ++table[task.level][task.recorded.level];
    if (task.recorded.level == 0) continue;
    ++recorded;
    same += task.recorded.level == std::min(task.level, 3);
  }
  std::cout << "given level   recorded as 1      2      3   not recorded\n";
  for (auto& [level, counts] : table) {
    std::cout << std::setw(11) << level << std::setw(16) << counts[1] << std::setw(7) << counts[2] << std::setw(7)
              << counts[3] << std::setw(15) << counts[0] << "\n";
  }
  std::cout << "same: " << same << " of " << recorded << " recorded (levels above 3 count as 3)\n";
}

int label(const ImportArguments& a, bool relabel) {
  std::vector<Task> tasks = load_tasks(a.in);
  auto verifier = open_verifier(a.config);
  std::vector<std::string> problems(tasks.size());
  for_each_task(*verifier, "record", tasks.size(), [&](size_t i) { problems[i] = record_task(*verifier, &tasks[i]); });
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (!problems[i].empty()) log_warn(cat(tasks[i].id, " cannot be recorded: ", problems[i]));
  }
  print_agreement(tasks);
  if (relabel) {
    for (Task& task : tasks) {
      if (task.recorded.level > 0) task.level = task.recorded.level;
    }
  }
  save_tasks(a.out, tasks);
  return 0;
}

}  // namespace

void add_data_import(CLI::App& data, Run& run) {
  auto* command = data.add_subcommand("import", "bring other people's tasks in: kernelbook, kernelbench, jsonl");
  command->require_subcommand(1);
  const std::pair<const char*, const char*> formats[] = {
      {"kernelbook", "pairs in the layout of GPUMODE/KernelBook (json, jsonl, parquet)"},
      {"kernelbench", "KernelBench: its folder of level1 .. level4, or one JSON object a line"},
      {"jsonl", "your own pairs, see docs/data.md"}};
  for (const auto& [name, help] : formats) {
    auto* sub = command->add_subcommand(name, help);
    auto a = std::make_shared<ImportArguments>();
    sub->add_option("input", a->in, "file or folder")->required();
    sub->add_option("--out", a->out, "task set to write (JSON lines); rejected rows go beside it")->required();
    sub->add_flag("--verify", a->verify, "keep only pairs whose solution the verifier accepts");
    sub->add_flag("!--no-record", a->record, "do not record references: no levels, no hashes of graphs");
    sub->add_flag("--overwrite", a->overwrite, "start anew, and replace the output");
    a->config.add_weaker_to(*sub);
    a->config.add_named_to(*sub);
    sub->callback([=, &run, format = std::string(name)] { run = [=] { return import(*a, format); }; });
  }
}

void add_data_label(CLI::App& data, Run& run) {
  auto* command = data.add_subcommand("label", "record every reference: compute operations, level, hash of its graph");
  auto a = std::make_shared<ImportArguments>();
  auto relabel = std::make_shared<bool>(false);
  command->add_option("tasks", a->in, "task set (JSON lines)")->required();
  command->add_option("--out", a->out, "task set to write")->required();
  command->add_flag("--relabel", *relabel, "put the recorded level in place of the given one");
  a->config.add_weaker_to(*command);
  a->config.add_named_to(*command);
  command->callback([=, &run] { run = [=] { return label(*a, *relabel); }; });
}

}  // namespace tritonrl
