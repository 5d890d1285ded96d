// SPDX-License-Identifier: Apache-2.0
// data solve: writes Triton solutions for tasks, and keeps those that the verifier accepts.
#include <algorithm>
#include <iomanip>
#include <iostream>

#include "app/commands/commands_data.h"
#include "app/config.h"
#include "base/log.h"
#include "base/text.h"
#include "verify/solve/solver.h"

namespace tritonrl {

namespace {

struct SolveArguments {
  ConfigArguments config;
  std::string in, json, out, sizes = "full";
};

struct Solved {
  Proposal proposal;
  std::string outcome;  // "solved", the kind of a proposal that there is not, or the verifier's outcome.
  std::string problem;
};

std::unique_ptr<Verifier> open_solver(const SolveArguments& a) {
  VerifyConfig config = a.config.load().verify;
  VerifySeams seams;
  if (a.sizes == "tiny") seams.cases = std::make_shared<TinyCases>(config.seeds_per_case);
  return Verifier::open(config, seams);
}

void judge(Verifier& verifier, std::vector<Task>& tasks, std::vector<Solved>& solved) {
  std::vector<const Task*> proposed;
  std::vector<size_t> places;
  std::vector<std::string> before(tasks.size());
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (solved[i].proposal.solution.empty()) continue;
    before[i] = std::exchange(tasks[i].solution, solved[i].proposal.solution);
    proposed.push_back(&tasks[i]);
    places.push_back(i);
  }
  Progress bar("data: verify", static_cast<int64_t>(proposed.size()), "solutions");
  std::vector<Verdict> verdicts = verifier.verify_solutions(proposed, [&](int64_t done) { bar.update(done); });
  for (size_t c = 0; c < verdicts.size(); ++c) {
    size_t i = places[c];
    solved[i].outcome = verdicts[c].correct() ? "solved" : to_string(verdicts[c].outcome);
    if (verdicts[c].correct()) continue;
    solved[i].problem = cat(to_string(verdicts[c].stopped_at), ": ", verdicts[c].reason());
    tasks[i].solution = before[i];
  }
}

void print(const std::vector<Task>& tasks, const std::vector<Solved>& solved) {
  std::map<int, std::map<std::string, int64_t>> levels;
  std::map<std::string, int64_t> causes;
  for (size_t i = 0; i < tasks.size(); ++i) {
    ++levels[tasks[i].level][solved[i].outcome];
    if (solved[i].outcome == "solved") continue;
    std::string first = solved[i].problem.substr(0, solved[i].problem.find('\n'));
    ++causes[cat(solved[i].outcome, ": ", first)];
    std::cout << std::left << std::setw(24) << tasks[i].id << std::setw(16) << solved[i].outcome << first << "\n";
  }
  std::vector<std::pair<std::string, int64_t>> order(causes.begin(), causes.end());
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  for (const auto& [cause, count] : order) {
    if (count > 1) std::cout << "  " << std::right << std::setw(4) << count << " x " << cause << "\n";
  }
  for (const auto& [level, counts] : levels) {
    int64_t all = 0;
    for (const auto& [outcome, count] : counts) all += count;
    auto it = counts.find("solved");
    std::cout << "level " << level << ": " << (it == counts.end() ? 0 : it->second) << " of " << all << " solved";
    for (const auto& [outcome, count] : counts) {
      if (outcome != "solved") std::cout << ", " << outcome << " " << count;
    }
    std::cout << "\n";
  }
}

int solve(const SolveArguments& a) {
  bool python = std::filesystem::path(a.in).extension() == ".py";
  std::vector<Task> tasks = python ? std::vector{task_from_python(a.in)} : load_tasks(a.in);
  auto verifier = open_solver(a);
  std::vector<Solved> solved(tasks.size());
  for_each_task(*verifier, "solve", tasks.size(), [&](size_t i) {
    solved[i].proposal = propose_solution(*verifier, tasks[i]);
    solved[i].outcome = solved[i].proposal.kind;
    solved[i].problem = clean_message(solved[i].proposal.problem);
  });
  judge(*verifier, tasks, solved);
  print(tasks, solved);
  if (!a.json.empty()) {
    Json list = Json::array();
    for (size_t i = 0; i < tasks.size(); ++i) {
      list.push_back({{"id", tasks[i].id},
                      {"level", tasks[i].level},
                      {"outcome", solved[i].outcome},
                      {"problem", solved[i].problem},
                      {"graph", solved[i].proposal.graph},
                      {"proposal", solved[i].proposal.solution}});
    }
    write_file(a.json, list.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  }
  if (!a.out.empty()) save_tasks(a.out, tasks);
  return std::all_of(solved.begin(), solved.end(), [](const Solved& one) { return one.outcome == "solved"; }) ? 0 : 1;
}

}  // namespace

void add_data_solve(CLI::App& data, Run& run) {
  auto* command = data.add_subcommand("solve", "write Triton solutions and verify them: 0 = every task has one");
  auto a = std::make_shared<SolveArguments>();
  command->add_option("tasks", a->in, "task set (JSON lines), or one module (.py with Model and get_inputs)")
      ->required();
  command->add_option("--out", a->out, "write the tasks here, with the solutions that passed");
  command->add_option("--json", a->json, "write what came of every task here");
  command
      ->add_option("--sizes", a->sizes, "full = as written, and tiny sizes where a task has some; tiny = those alone")
      ->check(CLI::IsMember({"tiny", "full"}));
  a->config.add_weaker_to(*command);
  a->config.add_named_to(*command);
  command->callback([=, &run] { run = [=] { return solve(*a); }; });
}

}  // namespace tritonrl
