// SPDX-License-Identifier: Apache-2.0
// eval: a policy measured on a task file, or answers that are stored already.
#include <iostream>

#include "app/assemble.h"
#include "app/commands/commands.h"
#include "app/train/checkpoints.h"
#include "app/train/training_check.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "data/tasks/task_facts.h"
#include "eval/peer.h"
#include "eval/tables.h"

namespace tritonrl {
namespace {

namespace fs = std::filesystem;

struct EvalArguments {
  ConfigArguments config;
  std::string tasks, adapter, out, from, peer, run, name = "policy";
  bool json = false;
};

std::vector<Task> chosen_tasks(const Config& config, const std::string& named) {
  std::string file = named.empty() ? config.eval.tasks : named;
  if (file.empty()) throw usage_error("no task set: give --tasks or eval.tasks");
  auto tasks = load_tasks(file);
  if (!config.eval.ids.empty()) tasks = tasks_of_ids(tasks, find_data_file(config.eval.ids));
  return tasks;
}

std::vector<EvalRecord> answer(const Config& config, const std::vector<Task>& tasks, const std::string& adapter) {
  Policy policy = Policy::open(find_policy(config), PromptTemplate::load(find_data_file(config.data.prompt)));
  if (!adapter.empty()) {
    check_checkpoint(adapter, policy.config().model);
    policy.set_adapter(LoraAdapter::load(adapter, policy.weights()));
  }
  auto verifier = Verifier::open(config.verify, make_verify_seams(config));
  Rng rng = Rng(static_cast<uint64_t>(config.eval.seed)).at("eval");
  return records_of(roll_out_and_verify(policy.snapshot(), *verifier, tasks, config.eval.samples, config.eval.sampling,
                                        rng, {"eval", should_stream(config.eval.stream, policy)}));
}

// Stored answers need no task set; one that is named must be theirs.
std::vector<Task> tasks_of(const std::vector<EvalRecord>& records, const std::string& file) {
  std::vector<Task> tasks;
  if (!file.empty()) tasks = load_tasks(file);
  std::set<std::string> known;
  for (const Task& task : tasks) known.insert(task.id);
  int64_t others = 0;
  for (const EvalRecord& record : records) others += !known.contains(record.task_id);
  if (tasks.empty() || others == 0) return tasks;
  if (others == static_cast<int64_t>(records.size()))
    throw usage_error("none of the answers is to one of its tasks", file);
  log_warn(cat(others, " of ", records.size(), " answers are to tasks that ", file, " does not have"));
  return tasks;
}

std::map<std::string, std::string> sources_of(const std::vector<Task>& tasks) {
  std::map<std::string, std::string> sources;
  for (const Task& task : tasks) sources[task.id] = task.source;
  return sources;
}

int evaluate(const EvalArguments& arguments) {
  std::vector<EvalRecord> records;
  std::vector<Task> tasks;
  std::optional<Peer> peer;
  std::optional<TrainingSet> training;
  if (!arguments.run.empty()) training = load_training_set(arguments.run);
  if (!arguments.run.empty() && !training) {
    throw usage_error(cat("has no ", kTrainingSetFile), arguments.run, "--run names the directory of a training run");
  }
  if (!arguments.peer.empty()) peer = load_peer(arguments.peer);
  if (!arguments.from.empty()) {
    if (!arguments.adapter.empty() || !arguments.out.empty()) {
      throw usage_error("--from measures what is stored: nothing is drawn with --adapter or written to --out");
    }
    records = load_answers(arguments.from);
    tasks = tasks_of(records, arguments.tasks);
  } else {
    Config config = arguments.config.load();
    tasks = chosen_tasks(config, arguments.tasks);
    if (!training)
      training =
          training_set_of_checkpoint(arguments.adapter.empty() ? find_model(config.policy.model) : arguments.adapter);
    records = answer(config, tasks, arguments.adapter);
  }
  if (peer) check_same_sources(*peer, sources_of(tasks));
  ResultsRow row = make_row(arguments.name, records, operators_by_task(tasks));
  if (training && !tasks.empty()) note_training(*training, tasks, records, &row);
  if (peer) compare_with_peer(*peer, records, &row);
  std::string json = to_json(row).dump(2) + "\n";
  if (!arguments.out.empty()) {
    save_records(arguments.out, records);
    write_file(fs::path(arguments.out).replace_extension(".metrics.json"), json);
  }
  std::cout << (arguments.json ? json : all_tables(row));
  return 0;
}

}  // namespace

void add_eval(CLI::App& app, Run& run) {
  auto* command = app.add_subcommand("eval", "measure a policy on a task file, or answers that are stored");
  auto arguments = std::make_shared<EvalArguments>();
  arguments->config.add_to(*command);
  command->add_option("--tasks", arguments->tasks, "task set (JSON lines); default: eval.tasks of the config");
  command->add_option("--adapter", arguments->adapter, "PEFT folder; without it the model as it is");
  command->add_option("--out", arguments->out,
                      "write one record an answer here (JSON lines), and what is measured beside it (.metrics.json)");
  command->add_option("--from", arguments->from,
                      "run nothing: measure the records of an earlier --out, or the verdicts of `verify --batch`");
  command->add_option("--peer", arguments->peer,
                      "also measure against what bench/torch_compile.py wrote: shares that are faster than that");
  command->add_option("--run", arguments->run,
                      "directory of the run that trained the model: were these tasks kept from it, which operators had "
                      "training tasks? Default: the run that the adapter or the model lies in");
  command->add_flag("--json", arguments->json, "print the row of results.json in place of the tables");
  command->add_option("--name", arguments->name, "name of the row");
  command->callback([=, &run] { run = [=] { return evaluate(*arguments); }; });
}

}  // namespace tritonrl
