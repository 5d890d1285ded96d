// SPDX-License-Identifier: Apache-2.0
// data show, list, stats and operators: looking at a task set.
#include <filesystem>
#include <iostream>
#include <memory>

#include "app/assemble.h"
#include "app/commands/commands.h"
#include "app/commands/task_stats.h"
#include "app/config.h"
#include "data/synth/coverage.h"
#include "data/tasks/task_filter.h"
#include "model/tokenizer/tokenizer.h"
#include "report/layout.h"

namespace tritonrl {

namespace {

namespace fs = std::filesystem;

int show(const std::string& file, const std::string& id) {
  std::vector<std::string> ids;
  bool found = false;
  for_each_json_line(file, [&](int64_t line, const Json& json) {
    if (found) return;
    Task task = task_from_json(json, cat(file, ":", line));
    if (task.id != id) {
      ids.push_back(task.id);
      return;
    }
    found = true;
    std::cout << "# " << task.id << "  level " << task.level << "  "
              << (task.difficulty ? cat("difficulty ", task.difficulty, "  ") : std::string()) << task.name << "  "
              << task.graph_hash << "\n\n"
              << task.source << "\n";
    if (!task.solution.empty()) std::cout << "# ---- solution ----\n\n" << task.solution << "\n";
  });
  if (found) return 0;
  std::string close = nearest(id, ids);
  throw usage_error("no task '" + id + "'", file, close.empty() ? "" : "did you mean '" + close + "'?");
}

int list(const std::string& file, const std::string& where, bool json_lines) {
  TaskFilter filter = parse_task_filter(where);
  int64_t seen = 0, listed = 0;
  for_each_json_line(file, [&](int64_t line, const Json& json) {
    Task task = task_from_json(json, cat(file, ":", line));
    TaskFacts facts = facts_of(task);
    ++seen;
    if (!filter(task, facts)) return;
    ++listed;
    if (json_lines) {
      std::cout << json_line(json) << "\n";
    } else {
      std::cout << task.id << "  level " << task.level << "  " << join({facts.dtypes.begin(), facts.dtypes.end()}, ",")
                << "  " << (task.solution.empty() ? "no solution" : "solution") << "  " << task.name << "\n";
    }
  });
  std::cerr << listed << " of " << seen << " tasks\n";
  return 0;
}

int stats(const std::string& file, const Config& config, bool json, const std::string& out) {
  std::unique_ptr<Tokenizer> tokenizer;
  if (fs::exists(fs::path(config.policy.model) / "tokenizer.json")) {
    tokenizer = std::make_unique<Tokenizer>(Tokenizer::load(config.policy.model));
  }
  TaskStats result = stats_of(file, tokenizer ? "tokens" : "characters", [&](const std::string& text) {
    return tokenizer ? static_cast<int64_t>(tokenizer->encode_plain(text).size()) : static_cast<int64_t>(text.size());
  });
  if (!out.empty()) {
    reporting::Document page = to_document(result, "Tasks in " + fs::path(file).filename().string());
    bool markdown = fs::path(out).extension() == ".md";
    write_file(out, markdown ? reporting::to_markdown(page) : reporting::to_html(page));
  }
  if (json) {
    std::cout << to_json(result).dump(2) << "\n";
  } else {
    std::cout << to_text(result);
  }
  return 0;
}

}  // namespace

void add_data_show(CLI::App& data, Run& run) {
  struct ShowArguments {
    ConfigArguments config;
    std::string first, second, where, out;
    bool json = false;
  };
  auto arguments = std::make_shared<ShowArguments>();
  auto* show_command = data.add_subcommand("show", "print one task of a task set, source and solution");
  show_command->add_option("first", arguments->first, "task set (JSON lines), or the id")->required();
  show_command->add_option("second", arguments->second, "the other of the two")->required();
  show_command->callback([=, &run] {
    run = [=] {
      bool id_first = !fs::exists(arguments->first) && fs::exists(arguments->second);
      return id_first ? show(arguments->second, arguments->first) : show(arguments->first, arguments->second);
    };
  });
  auto* list_command = data.add_subcommand("list", "list the tasks of a set that pass a filter");
  list_command->add_option("tasks", arguments->first, "task set (JSON lines)")->required();
  list_command->add_option("--where", arguments->where, "e.g. 'level=2 and op=softmax' (docs/synthesiser.md)");
  list_command->add_flag("--json", arguments->json, "print the tasks themselves, one a line");
  list_command->callback(
      [=, &run] { run = [=] { return list(arguments->first, arguments->where, arguments->json); }; });
  auto* operators_command =
      data.add_subcommand("operators", "which operators of a task set the synthesiser has no solution for");
  operators_command->add_option("tasks", arguments->first, "task set (JSON lines)")->required();
  operators_command->callback([=, &run] {
    run = [=] {
      std::cout << graphs::to_text(graphs::operator_coverage(load_tasks(arguments->first)));
      return 0;
    };
  });
  auto* stats_command = data.add_subcommand("stats", "levels, operators, dtypes, sizes and lengths of a task set");
  stats_command->add_option("tasks", arguments->first, "task set (JSON lines)")->required();
  stats_command->add_flag("--json", arguments->json, "print JSON");
  stats_command->add_option("--out", arguments->out, "also write a page: .html, or .md");
  arguments->config.add_named_to(*stats_command, "policy.model, whose tokenizer counts");
  stats_command->callback([=, &run] {
    run = [=] { return stats(arguments->first, arguments->config.load(), arguments->json, arguments->out); };
  });
}

}  // namespace tritonrl
