// SPDX-License-Identifier: Apache-2.0
// data variants: finds and proves tasks' sizes for tiny runs and for runs half as large again.
#include <iostream>

#include "app/commands/commands_data.h"
#include "verify/variants.h"

namespace tritonrl {

namespace {

struct VariantsArguments {
  ConfigArguments config;
  std::string in, out;
};

int variants(const VariantsArguments& a) {
  std::vector<Task> tasks = load_tasks(a.in);
  auto verifier = open_verifier(a.config);
  std::vector<Variants> found(tasks.size());
  for_each_task(*verifier, "variants", tasks.size(), [&](size_t i) {
    // A solution may have the sizes in its text, where nobody can rebind them.
    if (tasks[i].solution.empty()) found[i] = find_variants(*verifier, tasks[i]);
  });
  struct Count {
    int64_t tasks = 0, tiny = 0, larger = 0, both = 0, renamed = 0, failed = 0, traces = 0, solved = 0;
  };
  std::map<int, Count> counts;
  for (size_t i = 0; i < tasks.size(); ++i) {
    Count& count = counts[tasks[i].level];
    ++count.tasks;
    count.traces += found[i].traces;
    if (!tasks[i].solution.empty()) {
      ++count.solved;
      continue;
    }
    count.failed += !found[i].failure.empty();
    count.tiny += !found[i].tiny.empty();
    count.larger += !found[i].larger.empty();
    count.both += !found[i].tiny.empty() && !found[i].larger.empty();
    if (found[i].tiny.empty() && found[i].larger.empty()) continue;
    count.renamed += found[i].source != tasks[i].source;
    tasks[i].source = found[i].source;
    tasks[i].tiny = found[i].tiny;
    tasks[i].larger = found[i].larger;
  }
  for (const auto& [level, c] : counts) {
    std::cout << "level " << level << ": " << c.tasks << " tasks, tiny " << c.tiny << ", +50 % " << c.larger
              << ", both " << c.both << "; sizes named in the source " << c.renamed << ", not recordable " << c.failed
              << ", left alone because they have a solution " << c.solved << " (" << c.traces << " traces)\n";
  }
  save_tasks(a.out, tasks);
  return 0;
}

}  // namespace

void add_data_variants(CLI::App& data, Run& run) {
  auto* command = data.add_subcommand("variants", "find sizes for tiny runs and for runs half as large again");
  auto a = std::make_shared<VariantsArguments>();
  command->add_option("tasks", a->in, "task set (JSON lines)")->required();
  command->add_option("--out", a->out, "task set to write")->required();
  a->config.add_weaker_to(*command);
  a->config.add_named_to(*command);
  command->callback([=, &run] { run = [=] { return variants(*a); }; });
}

}  // namespace tritonrl
