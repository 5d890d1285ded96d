// SPDX-License-Identifier: Apache-2.0
// data check-split: does a training set give held-out tasks away?
#include <atomic>
#include <iomanip>
#include <iostream>
#include <set>

#include "app/commands/commands_data.h"
#include "base/text.h"
#include "data/tasks/leaks.h"

namespace tritonrl {

namespace {

struct SplitArguments {
  ConfigArguments config;
  std::string train, heldout, json, clean;
  bool record = true;
  int from_level = 1;
};

int check_split(const SplitArguments& a) {
  std::vector<Task> train = load_tasks(a.train), heldout = load_tasks(a.heldout);
  std::erase_if(heldout, [&](const Task& task) { return task.level < a.from_level; });
  std::vector<Task*> open;
  for (auto* tasks : {&train, &heldout}) {
    for (Task& task : *tasks) {
      if (task.recorded.outline.empty()) open.push_back(&task);
    }
  }
  int64_t unrecorded = static_cast<int64_t>(open.size());
  if (a.record && !open.empty()) {
    auto verifier = open_verifier(a.config);
    std::atomic<int64_t> failed{0};
    for_each_task(*verifier, "record", open.size(),
                  [&](size_t i) { failed += !record_task(*verifier, open[i]).empty(); });
    unrecorded = failed;
  }
  std::vector<Leak> leaks = find_leaks(train, heldout);
  std::set<std::string> leaking, given_away;
  Json pairs = Json::array();
  for (const Leak& leak : leaks) {
    leaking.insert(leak.train_id);
    given_away.insert(leak.heldout_id);
    pairs.push_back(
        {{"kind", leak.kind}, {"train", leak.train_id}, {"heldout", leak.heldout_id}, {"overlap", leak.overlap}});
  }
  auto counts = count_leaks(leaks);
  if (!a.json.empty()) {
    write_file(a.json, Json({{"train", a.train},
                             {"heldout", a.heldout},
                             {"train_tasks", train.size()},
                             {"heldout_tasks", heldout.size()},
                             {"not_recorded", unrecorded},
                             {"pairs", counts},
                             {"leaking_train_tasks", leaking.size()},
                             {"heldout_tasks_given_away", given_away.size()},
                             {"leaks", pairs}})
                               .dump(2) +
                           "\n");
  }
  for (size_t i = 0; i < leaks.size() && i < 20; ++i) {
    std::cout << std::left << std::setw(10) << leaks[i].kind << leaks[i].train_id << " ~ " << leaks[i].heldout_id
              << (leaks[i].kind == "near" ? cat(" (", fixed(100 * leaks[i].overlap, 0), " % of lines)") : "") << "\n";
  }
  if (leaks.size() > 20) std::cout << "... and " << leaks.size() - 20 << " more pairs (--json has them all)\n";
  for (const auto& [name, tasks] : {std::pair("training", &train), std::pair("held-out", &heldout)}) {
    int64_t graphs = 0, calls = 0, none = 0, singles = 0;
    for (const Task& task : *tasks) {
      const std::string& outline = task.recorded.outline;
      singles += task.level < 2;
      (outline.empty() ? none : outline.rfind("calls:", 0) == 0 ? calls : graphs) += 1;
    }
    std::cout << name << " tasks: " << graphs << " compared by the graph of what they compute, " << calls
              << " by the list of operators they call, " << none << " by their text alone; " << singles
              << " of level 1\n";
  }
  std::cout << train.size() << " x " << heldout.size() << " tasks, " << unrecorded << " not recorded; pairs: ";
  for (const char* kind : {"graph", "source", "constants", "outline", "near"})
    std::cout << kind << " " << counts[kind] << "  ";
  std::cout << "\n"
            << leaking.size() << " training tasks leak, " << given_away.size() << " held-out tasks are given away\n";
  if (!a.clean.empty()) {
    std::vector<Task> kept;
    for (Task& task : train) {
      if (!leaking.count(task.id)) kept.push_back(std::move(task));
    }
    save_tasks(a.clean, kept);
    std::cout << kept.size() << " clean training tasks in " << a.clean << "\n";
  }
  return leaks.empty() ? 0 : 1;
}

}  // namespace

void add_data_check_split(CLI::App& data, Run& run) {
  auto* command = data.add_subcommand("check-split", "find training tasks that give held-out ones away: 0 = none");
  auto a = std::make_shared<SplitArguments>();
  command->add_option("--train", a->train, "task set that is trained on")->required();
  command->add_option("--heldout,--against", a->heldout, "task set that is evaluated on")->required();
  command->add_option("--from-level", a->from_level,
                      "leave out held-out tasks below: 2 = single operators may be taught");
  command->add_option("--json", a->json, "write all leaking pairs here");
  command->add_option("--clean", a->clean, "write the training tasks that do not leak here");
  command->add_flag("!--no-record", a->record, "compare tasks that were not recorded by their sources alone");
  a->config.add_weaker_to(*command);
  a->config.add_named_to(*command);
  command->callback([=, &run] { run = [=] { return check_split(*a); }; });
}

}  // namespace tritonrl
