// SPDX-License-Identifier: Apache-2.0
// verify: one candidate or a batch of them, without any policy.
#include <iostream>

#include "app/assemble.h"
#include "app/commands/commands.h"
#include "app/config.h"
#include "base/log.h"
#include "verify/batch.h"

namespace tritonrl {

namespace {

struct VerifyArguments {
  ConfigArguments config;
  std::string candidate, task, batch, out;
  bool json = false, answer = false;
};

void print(const Verdict& verdict) {
  for (const StageResult& stage : verdict.stages) {
    std::cout << "  " << to_string(stage.stage) << ": " << to_string(stage.outcome()) << " ("
              << human_seconds(stage.seconds) << ")\n";
  }
  if (verdict.correct()) {
    std::cout << "verified correct on path '" << name_of(verdict.path) << "', " << verdict.triton_launches
              << " Triton launches a call; time: "
              << (verdict.speedup ? "speedup " + fixed(*verdict.speedup, 2) : std::string("not measured")) << "\n";
  } else {
    std::cout << to_string(verdict.outcome) << " at " << to_string(verdict.stopped_at) << "\n"
              << verdict.reason() << "\n";
  }
  if (!verdict.sandbox_missing.empty())
    std::cout << "weaker sandbox: without " << join(verdict.sandbox_missing, ", ") << "\n";
}

int verify_one(const VerifyArguments& a, Verifier& verifier) {
  Candidate candidate;
  candidate.id = std::filesystem::path(a.candidate).filename().string();
  candidate.task = task_from_python(a.task);
  candidate.text = read_file(a.candidate);
  candidate.is_code = !a.answer;
  Verdict verdict = verifier.verify({&candidate, 1}).at(0);
  if (!verdict.task_failure.empty()) {
    throw usage_error("the task's own reference fails: " + verdict.task_failure, a.task,
                      "Model, get_inputs and get_init_inputs must run on the CPU");
  }
  if (a.json) {
    std::cout << to_json(verdict).dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  } else {
    print(verdict);
  }
  if (verdict.is_harness_fault()) throw environment_error("the verifier itself failed: " + verdict.reason(), a.task);
  return verdict.correct() ? 0 : 1;
}

}  // namespace

void add_verify(CLI::App& app, Run& run) {
  auto* command =
      app.add_subcommand("verify", "judge candidates: 0 = correct, 1 = not correct, 2 = usage, 3 = environment");
  auto arguments = std::make_shared<VerifyArguments>();
  command->add_option("candidate", arguments->candidate, "Python file with ModelNew");
  command->add_option("--task", arguments->task, "Python file with Model, get_inputs, get_init_inputs");
  command->add_flag("--answer", arguments->answer, "the candidate file is a chat answer with a fenced code block");
  command->add_flag("--json", arguments->json, "print the whole verdict as JSON");
  command->add_option("--batch", arguments->batch, "jobs, one JSON object a line: {\"id\", \"task\", \"candidate\"}");
  command->add_option("--out", arguments->out, "verdicts of --batch, one JSON object a line");
  arguments->config.add_named_to(*command, "verify, cases, stages, timing");
  arguments->config.add_weaker_to(*command);
  command->callback([=, &run] {
    run = [=] {
      const VerifyArguments& a = *arguments;
      bool batch = !a.batch.empty();
      if (batch != !a.out.empty()) throw usage_error("--batch and --out go together");
      if (batch != a.candidate.empty() || batch != a.task.empty()) {
        throw usage_error("give either a candidate and --task, or --batch and --out");
      }
      Config config = a.config.load();
      auto verifier = Verifier::open(config.verify, make_verify_seams(config));
      if (!batch) return verify_one(a, *verifier);
      std::optional<Progress> bar;
      BatchResult result = run_batch(*verifier, a.batch, a.out, [&](int64_t done, int64_t total) {
        if (!bar) bar.emplace("verify", total, "candidates", done);  // First of all it says what was there.
        bar->update(done);
      });
      bar.reset();
      std::cout << result.total << " candidates, " << result.correct << " correct, " << result.skipped
                << " had verdicts already\n";
      return 0;
    };
  });
}

}  // namespace tritonrl
