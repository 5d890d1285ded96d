// SPDX-License-Identifier: Apache-2.0
// For tests: writes a run directory with made-up but plausible numbers, the same ones every time.
#pragma once

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "base/files/line_file.h"
#include "base/rng.h"
#include "base/text.h"
#include "eval/metrics.h"
#include "support/made_up_finding.h"

namespace tritonrl {

struct MadeUpSize {
  int tasks_per_level = 3, samples = 4, sft_steps = 8, rl_steps = 2, rollouts = 12;
};

inline Verdict made_up_verdict(const std::string& id, const std::string& task, int level, Stage stage, Outcome outcome,
                               const std::string& message) {
  Verdict v;
  v.candidate_id = id;
  v.task_id = task;
  v.level = level;
  v.outcome = outcome;
  v.stopped_at = stage;
  constexpr double kSeconds[kStageCount] = {0.00025, 0.0005, 0.75, 0.25, 1.5, 0};
  for (int s = 0; s <= static_cast<int>(stage); ++s) {
    bool last = s == static_cast<int>(stage);
    v.stages.push_back({static_cast<Stage>(s), kSeconds[s], last ? made_up_finding(outcome, message) : Finding()});
  }
  v.path = stage >= Stage::kTinyRun ? VerifyPath::kInterpreter : VerifyPath::kNone;
  v.triton_launches = stage >= Stage::kTinyRun ? 1 : 0;
  if (stage > Stage::kExtract) v.code = "import triton\n";
  return v;
}

// A candidate that is correct with probability p; the others fail somewhere on the way.
inline Verdict made_up_sample(Rng& rng, const std::string& id, const std::string& task, int level, double p) {
  if (rng.uniform() < p) return made_up_verdict(id, task, level, Stage::kFullRun, Outcome::kPass, "");
  double u = rng.uniform() + 0.5 * p;  // The better the model, the later it fails.
  if (u < 0.35) return made_up_verdict(id, task, level, Stage::kExtract, Outcome::kNoCode, "no fenced code block");
  if (u < 0.45)
    return made_up_verdict(id, task, level, Stage::kSyntax, Outcome::kSyntaxError, "line 3: unexpected indent");
  if (u < 0.55) return made_up_verdict(id, task, level, Stage::kSyntax, Outcome::kRuleBreak, "no Triton launch");
  if (u < 0.75) return made_up_verdict(id, task, level, Stage::kCompile, Outcome::kCompileError, "NameError: tl.gelu");
  if (u < 1.05)
    return made_up_verdict(id, task, level, Stage::kTinyRun, Outcome::kWrongOutput, "97 of 128 elements differ");
  return made_up_verdict(id, task, level, Stage::kFullRun, Outcome::kTimeout, "deadline of 30 s passed");
}

inline void write_made_up_run(const std::filesystem::path& dir, const MadeUpSize& size = {}) {
  namespace fs = std::filesystem;
  fs::create_directories(dir);
  for (const char* name : {"steps.jsonl", "verdicts.jsonl"}) fs::remove(dir / name);
  Rng rng(5);
  auto verdicts = LineFile::open(dir / "verdicts.jsonl");
  auto log_verdict = [&](const Verdict& verdict, const std::string& phase, const Json& reward) {
    Json line = to_json(verdict);
    line["phase"] = phase;
    line["reward"] = reward;
    verdicts.write(line);
  };

  auto steps = LineFile::open(dir / "steps.jsonl");
  for (int step = 1; step <= size.sft_steps; ++step) {
    double t = static_cast<double>(step) / size.sft_steps;
    steps.write({{"phase", "sft"},
                 {"step", step},
                 {"loss", 0.02 + 2.1 * std::exp(-6 * t) + 0.02 * rng.uniform()},
                 {"lr", 0.002 * std::min(10 * t, 0.5 + 0.5 * std::cos(3.14159 * t))},
                 {"grad_norm", 1.5 - t},
                 {"tokens", 1700 + step},
                 {"tokens_per_s", 180.0},
                 {"seconds", 9.5}});
  }
  for (int step = 1; step <= size.rl_steps; ++step) {
    Json line = {{"phase", "rl"},
                 {"step", step},
                 {"rollouts", size.rollouts},
                 {"lr", 0.0005},
                 {"loss", 0.25 / step},
                 {"time/phase/rollout", 41.5},
                 {"time/phase/verify", 12.25},
                 {"time/phase/update", 20.0},
                 {"seconds", 75.0}};
    std::map<std::string, int> outcomes;
    double sum = 0;
    int correct = 0;
    for (int i = 0; i < size.rollouts; ++i) {
      Verdict v = made_up_sample(rng, cat("rl", step, "/", i), cat("rl/", i / 4), 1, 0.4 + 0.3 * step / size.rl_steps);
      if (step == 1 && i == 0)
        v = made_up_verdict("rl1/0", "rl/0", 1, Stage::kCompile, Outcome::kHarnessFault, "recorder killed");
      ++outcomes[to_string(v.outcome)];
      correct += v.correct();
      Json reward = v.is_harness_fault() ? Json() : Json(v.correct() ? 0.7 : 0.1 * static_cast<int>(v.stopped_at) / 2);
      if (!reward.is_null()) sum += reward.get<double>();
      log_verdict(v, cat("rl/round", step), reward);
    }
    for (const auto& [name, count] : outcomes) line["verify/outcome/" + name] = count;
    line["reward/mean"] = sum / size.rollouts;
    line["reward/std"] = 0.25;
    line["correct_rate"] = static_cast<double>(correct) / size.rollouts;
    line["kept"] = correct;
    steps.write(line);
  }

  std::vector<std::vector<EvalRecord>> evals;
  std::vector<ResultsRow> rows;
  const std::vector<std::string> models = {"base", "sft", "rl"};
  for (size_t m = 0; m < models.size(); ++m) {
    std::vector<EvalRecord> records;
    for (int level = 1; level <= 2; ++level) {
      for (int task = 0; task < size.tasks_per_level; ++task) {
        for (int sample = 0; sample < size.samples; ++sample) {
          EvalRecord r;
          r.task_id = cat("heldout/", level, "/", task);
          r.level = level;
          r.sample_index = sample;
          double p = m == 0 ? 0.0 : (level == 1 ? 0.45 : 0.12) + 0.12 * static_cast<double>(m - 1);
          r.verdict = made_up_sample(rng, cat(models[m], "/", level, "/", task, "#", sample), r.task_id, level, p);
          if (m == 1 && level == 2 && task == 0 && sample == 0) {
            r.verdict.outcome = Outcome::kHarnessFault;
            r.verdict.stages.back().finding = made_up_finding(Outcome::kHarnessFault);
          }
          r.tokens = 300 + 10 * sample;
          r.finished = m == 0 && sample == 0 ? "length" : "stop";
          log_verdict(r.verdict, "eval/" + models[m], nullptr);
          records.push_back(std::move(r));
        }
      }
    }
    rows.push_back(make_row(models[m], records));
    evals.push_back(std::move(records));
  }
  auto comparisons = compare_levels("base", evals[0], "sft", evals[1]);
  for (auto& c : compare_levels("sft", evals[1], "rl", evals[2])) comparisons.push_back(c);
  write_file(dir / "results.json", results_to_json(rows, comparisons).dump(2));

  write_file(dir / "config.yaml", "seed: 7\nsft:\n  lr: 0.002  # peak\n  steps: 8\nrl:\n  credit: best_of_n\n");
  Json env = {{"commit", "0123abcd"},
              {"dirty", false},
              {"gpu", nullptr},
              {"cpu", "2 cores"},
              {"torch", "2.11.0"},
              {"triton", "3.6.0"},
              {"command", {"tritonrl", "train", "configs/quick start.yaml", "--set", "seed=7"}}};
  write_file(dir / "env.json", env.dump(2));

  Json passed = to_json(made_up_verdict("rl/1/0#2", "heldout/1/0", 1, Stage::kFullRun, Outcome::kPass, ""));
  passed["code"] =
      "import torch\nimport triton\nimport triton.language as tl\n\n\n@triton.jit\ndef scale(x, y, n, BLOCK: "
      "tl.constexpr):\n"
      "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    keep = i < n\n"
      "    tl.store(y + i, tl.load(x + i, mask=keep) * 2.0, mask=keep)\n";
  passed["task_source"] = "class Model(nn.Module):\n    def forward(self, x):\n        return x * 2.0\n";
  Json failed = to_json(made_up_verdict("rl/2/1#0", "heldout/2/1", 2, Stage::kTinyRun, Outcome::kWrongOutput,
                                        "output 0: 97 of 128 elements differ; worst at [3, 17]: 0.25 instead of 0.75"));
  failed["code"] =
      "# </code></pre><script>alert(1)</script> <img src=x onerror=alert(2)> ``` | **bold**\n"
      "# \xE2\x80\xAE reversed \x1b[31m\nimport triton\n";
  failed["task_source"] = "class Model(nn.Module):\n    pass  # ````\n";
  write_file(dir / "examples.json", Json{{"passed", passed}, {"failed", failed}}.dump(2));
}

// Records of an evaluation that say no more than they must.
namespace made_up {

inline EvalRecord record(const std::string& task, int level, Outcome outcome, Stage stopped_at, int64_t sample = 0) {
  EvalRecord r;
  r.task_id = task;
  r.level = level;
  r.sample_index = sample;
  r.tokens = 100;
  r.verdict.candidate_id = cat(task, "#", sample);
  r.verdict.task_id = task;
  r.verdict.level = level;
  r.verdict.outcome = outcome;
  r.verdict.stopped_at = stopped_at;
  for (int s = 0; s <= static_cast<int>(stopped_at); ++s) {
    auto stage = static_cast<Stage>(s);
    r.verdict.stages.push_back({stage, 0.01, stage == stopped_at ? made_up_finding(outcome) : Finding()});
  }
  return r;
}

inline EvalRecord pass(const std::string& task, int level, int64_t sample = 0) {
  return record(task, level, Outcome::kPass, Stage::kFullRun, sample);
}
inline EvalRecord fail(const std::string& task, int level, int64_t sample = 0) {
  return record(task, level, Outcome::kWrongOutput, Stage::kTinyRun, sample);
}

// `n` samples of one task, the first `correct` of them correct.
inline void add_task(std::vector<EvalRecord>& records, const std::string& task, int level, int n, int correct) {
  for (int i = 0; i < n; ++i) records.push_back(i < correct ? pass(task, level, i) : fail(task, level, i));
}

}  // namespace made_up

}  // namespace tritonrl
