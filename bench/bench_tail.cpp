// SPDX-License-Identifier: Apache-2.0
// How long the slowest verdicts hold a step: bench_tail JOBS.jsonl [options].
//
// Verifies the jobs of a batch (verify/batch.h) as so many RL steps, together with --slow candidates whose kernel takes
// minutes to compile (at random places, or --last), and prints for each step when 50, 90, 99 and 100 % of the verdicts
// were there, and the limits that held (rollout/late_limits.h). Each step has a verifier of its own: the kernels of the
// one before are not known.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "base/log.h"
#include "base/rng.h"
#include "base/text.h"
#include "rollout/late_limits.h"
#include "verify/batch.h"

namespace tritonrl {
namespace {

constexpr const char* kSlow = R"(import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    y = x * tl.sigmoid(x)
    for i in tl.static_range(NUMBER):
        y = y + tl.sin(x + i) * 0.0
    tl.store(y_ptr + offsets, y, mask=offsets < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 4096),)](x, y, x.numel(), BLOCK=4096)
        return y
)";
constexpr const char* kTask = R"(import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)


def get_inputs():
    return [torch.randn(16, 250)]


def get_init_inputs():
    return []
)";

int run(int argc, char** argv) {
  CLI::App app{"When the verdicts of a step are there"};
  std::string file;
  int64_t steps = 2, slow = 2, workers = 0;
  bool last = false;
  LateConfig late;
  app.add_option("jobs", file)->required();
  app.add_option("--steps", steps);
  app.add_option("--slow", slow, "candidates that take minutes to compile");
  app.add_flag("--last", last, "... and come last, which is the worst for a step");
  app.add_option("--workers", workers, "0 = one per core");
  app.add_option("--factor", late.factor, "rl.late.factor");
  app.add_option("--floor", late.floor_s, "rl.late.floor_s");
  CLI11_PARSE(app, argc, argv);

  std::vector<Candidate> candidates = load_jobs(file);
  auto shuffled = [rng = Rng(7)](std::vector<Candidate> all) mutable {
    rng.shuffle(all);
    return all;
  };
  if (last) candidates = shuffled(std::move(candidates));
  for (int64_t i = 0; i < slow; ++i) {
    Candidate one;
    one.id = cat("slow/", i);
    one.task.id = "slow";
    one.task.source = kTask;
    one.text = replace_all(kSlow, "NUMBER", cat(200 + i));
    one.is_code = true;
    candidates.push_back(std::move(one));
  }
  if (!last) candidates = shuffled(std::move(candidates));
  VerifyConfig config;
  config.workers = workers;
  config.seed = int64_t{1} << 40;
  LateLimits limits(late,
                    {{Stage::kCompile, config.compile_deadline_s},
                     {Stage::kTinyRun, config.tiny_deadline_s},
                     {Stage::kFullRun, config.full_deadline_s}},
                    0);
  for (int64_t step = 1; step <= steps; ++step) {
    auto verifier = Verifier::open(config);
    Group group;
    std::vector<double> there;
    int64_t correct = 0, late_ones = 0;
    double start = now_s();
    auto stream = verifier->stream(
        [&](size_t, Verdict verdict) {
          there.push_back(now_s() - start);
          correct += verdict.correct();
          late_ones += verdict.finding().rule() == Rule::kLate;
          group.samples.push_back({{}, std::move(verdict)});
        },
        0, limits.of_step(step));
    for (size_t i = 0; i < candidates.size(); ++i) stream->submit(i, candidates[i]);
    stream->finish();
    std::string held;
    for (const auto& [stage, limit] : limits.of_step(step)) held += cat(" ", to_string(stage), " ", fixed(limit, 1));
    std::cout << "step " << step << ":";
    for (double share : {0.5, 0.9, 0.99, 1.0}) {
      auto rank = static_cast<size_t>(share * static_cast<double>(there.size() - 1));
      std::cout << " " << fixed(100 * share, 0) << " % " << fixed(there[rank], 1) << " s,";
    }
    std::cout << " " << correct << " correct, " << late_ones << " late; limits in s:" << (held.empty() ? " none" : held)
              << std::endl;
    limits.observe(step, {&group, 1});
  }
  return 0;
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  try {
    return tritonrl::run(argc, argv);
  } catch (const tritonrl::Error& error) {
    std::cerr << error.what() << "\n";
    return error.exit_code();
  }
}
