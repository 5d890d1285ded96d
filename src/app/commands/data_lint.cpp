// SPDX-License-Identifier: Apache-2.0
// data lint: which tasks teach or measure nothing, and why.
#include <algorithm>
#include <iomanip>
#include <iostream>
#include <set>

#include "app/commands/commands_data.h"
#include "base/text.h"
#include "verify/task_lint.h"

namespace tritonrl {

namespace {

struct LintArguments {
  ConfigArguments config;
  std::string in, json, out, sizes = "tiny";
  int64_t workers = 0;
};

Json to_json(const LintReport& report) {
  Json flags = Json::array();
  for (const LintFlag& flag : report.flags) flags.push_back({{"flag", flag.flag}, {"detail", flag.detail}});
  return {{"id", report.task_id},        {"level", report.level},     {"sizes", report.sizes},
          {"controls", report.controls}, {"seconds", report.seconds}, {"flags", flags}};
}

int lint(const LintArguments& a) {
  std::vector<Task> tasks = load_tasks(a.in);
  auto verifier = open_verifier(a.config, a.workers);
  std::vector<LintReport> reports(tasks.size());
  for_each_task(*verifier, "lint", tasks.size(), [&](size_t i) {
    reports[i] = lint_task(*verifier, tasks[i], a.sizes == "tiny" ? tasks[i].tiny : std::map<std::string, int64_t>());
  });
  std::map<std::string, int64_t> counts;
  int64_t flagged = 0, shrunk = 0, controls = 0;
  Json list = Json::array();
  for (size_t i = 0; i < tasks.size(); ++i) {
    flagged += !reports[i].flags.empty();
    shrunk += !reports[i].sizes.empty();
    controls += reports[i].controls;
    std::set<std::string> names(tasks[i].flags.begin(), tasks[i].flags.end());
    for (const LintFlag& flag : reports[i].flags) {
      if (names.insert(flag.flag).second) ++counts[flag.flag];
      std::cout << std::left << std::setw(24) << tasks[i].id << std::setw(18) << flag.flag
                << flag.detail.substr(0, flag.detail.find('\n')) << "\n";
    }
    tasks[i].flags.assign(names.begin(), names.end());
    list.push_back(to_json(reports[i]));
  }
  std::cout << tasks.size() << " tasks (" << shrunk << " at tiny sizes), " << flagged << " flagged, " << controls
            << " operations left out in turn";
  for (const auto& [flag, count] : counts) std::cout << "\n  " << std::setw(18) << flag << count;
  std::cout << "\n";
  if (!a.json.empty()) {
    Json out = {{"tasks", tasks.size()}, {"flagged", flagged}, {"flags", counts}, {"reports", list}};
    write_file(a.json, out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  }
  if (!a.out.empty()) save_tasks(a.out, tasks);
  return flagged == 0 ? 0 : 1;
}

}  // namespace

void add_data_lint(CLI::App& data, Run& run) {
  auto* command = data.add_subcommand("lint", "find useless tasks: 0 = none, 1 = some are flagged");
  auto a = std::make_shared<LintArguments>();
  command->add_option("tasks", a->in, "task set (JSON lines)")->required();
  command->add_option("--json", a->json, "write all findings here");
  command->add_option("--out", a->out, "write the tasks with their flags here; training leaves flagged ones out");
  command->add_option("--sizes", a->sizes, "tiny = a task's tiny sizes where it has them, full = as written")
      ->check(CLI::IsMember({"tiny", "full"}));
  command->add_option("--workers", a->workers, "tasks at a time; 0 = one per core");
  a->config.add_weaker_to(*command);
  a->config.add_named_to(*command);
  command->callback([=, &run] { run = [=] { return lint(*a); }; });
}

}  // namespace tritonrl
