// SPDX-License-Identifier: Apache-2.0
// Random scripts of what befalls a candidate, through the verifier under all sixteen combinations of extensions, held
// against a model of what the verdict, the cases reported and the reward have to be.
#include "support/stage_scripts.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <set>

#include "app/assemble.h"
#include "base/rng.h"
#include "base/text.h"
#include "reward/reward.h"
#include "support/fake_jobs.h"
#include "verify/verifier.h"

namespace tritonrl::stage_scripts_test {
namespace {

using namespace stage_scripts;  // NOLINT(google-build-using-namespace)

constexpr int64_t kScripts = 600, kBatch = 20, kWindow = 40;

// --- Workers that follow a script.

// What a job's input is, its first number tells: it is the place of the input's name in inputs_.
class Actor {
 public:
  Actor(Script script, bool has_tiny) : script_(std::move(script)), has_tiny_(has_tiny) {}

  JobAnswer answer(const Job& job, const std::string& nonce) {
    std::lock_guard lock(mutex_);
    if (kind_of(job) == "reference") return reference(job, nonce);
    if (job.kind == "record") return record(job, nonce);
    if (job.kind == "compile") {
      auto number = job.args["spec"]["constants"]["CASE"]["i"].get<size_t>();
      return ended(happens(cat("compile ", number == 0 ? "full" : kOwnTrace.at(number - 1))), nonce,
                   [&](const std::string&) { return compile_answer(nonce); });
    }
    // Of several runs at once the script knows nothing: they are lost and asked for one by one, or too slow for it.
    JobAnswer answer = job.args.contains("others") ? JobAnswer() : interpret(job, nonce);
    answer.own_s = 0.6;
    return answer;
  }

  Json judge(const Json& question, const std::string& payload, std::string* tensors) {
    std::lock_guard lock(mutex_);
    if (question["do"] != "inputs" && question["do"] != "compare") return honest_judge(question, payload, tensors);
    std::string input = input_of(question);
    auto x = static_cast<float>(std::find(inputs_.begin(), inputs_.end(), input) - inputs_.begin() + 1);
    if (question["do"] == "compare") {  // As if the input were kInput.
      std::string got(payload);
      float first = 0;
      std::memcpy(&first, got.data(), sizeof first);
      first = first == 2 * x ? kExpected[0] : -1;
      std::memcpy(got.data(), &first, sizeof first);
      return honest_judge(question, got, tensors);
    }
    std::string what = happens("judge " + input);
    if (what == "lost" || what == "lost once") return nullptr;
    if (what == "reference fails") {
      Json skipped = judged({});
      skipped["skipped"] = "the reference fails";
      return question["additional"] ? skipped : reference_failed("bad shapes");
    }
    Json reply = honest_judge(question, payload, tensors);
    std::memcpy(tensors->data(), &x, sizeof x);
    return reply;
  }

 private:
  std::string happens(const std::string& point) {
    auto it = script_.find(point);
    if (it == script_.end()) return "";
    std::string what = it->second;
    if (what == "lost once") script_.erase(it);
    return what;
  }

  // The ends that any job can have; the others are for `else_` to answer.
  static JobAnswer ended(const std::string& what, const std::string& nonce,
                         const std::function<JobAnswer(const std::string& what)>& else_) {
    using Status = JobAnswer::Status;
    JobAnswer out;
    out.fault = "the script loses it";
    if (what == "lost" || what == "lost once") return out;
    if (what == "crash" || what == "killed") {
      out.status = what == "crash" ? Status::kSignaled : Status::kMemory;
      out.code = what == "crash" ? SIGSEGV : SIGKILL;
    } else if (what == "hangs") {
      out.status = Status::kDeadline;
    } else if (what == "flood") {
      out.status = Status::kOverflow;
    } else if (what == "garbage") {
      out.status = Status::kExited;
      out.result = std::string(100, '\xee');
    } else if (std::count(kTold.begin(), kTold.end(), what) > 0) {
      return failure(nonce, what.c_str());
    } else {
      return else_(what);
    }
    return out;
  }

  JobAnswer reference(const Job& job, const std::string& nonce) {
    std::string what = happens("reference");
    if (what == "reference fails") return failure(nonce, "runtime_error", "bad shapes");
    return ended(what, nonce, [&](const std::string&) {
      std::set<std::string> failing;
      for (const std::string& name : kOwnTrace) {
        if (!happens("reference " + name).empty()) failing.insert(name);
      }
      return reference_answer(nonce, job, failing);
    });
  }

  // The original's second seed and the reseeded case have nothing but their order to tell them by.
  std::string input_of(const Json& question) {
    auto name = question["case"].get<std::string>();
    if (question["values"] != "") name = question["values"];
    if (name == "full") {
      auto seed = question["input_seed"].get<int64_t>();
      auto known = std::find(seeds_.begin(), seeds_.end(), seed);
      if (known == seeds_.end()) known = seeds_.insert(seeds_.end(), seed);
      name = Names{"full 0", "full 1", "reseeded", "too many seeds"}.at(static_cast<size_t>(known - seeds_.begin()));
    }
    if (std::find(inputs_.begin(), inputs_.end(), name) == inputs_.end()) inputs_.push_back(name);
    return name;
  }

  JobAnswer record(const Job& job, const std::string& nonce) {
    full_runs_ = 0;
    return ended(happens("record"), nonce, [&](const std::string& what) {
      TraceFile file;
      Json failures = Json::array();
      for (size_t i = 0; i <= kOwnTrace.size(); ++i) {  // A kernel's specialisation for each.
        file.specs.push_back(with_specs(file_of({small_trace()})).specs[0]);
        Json& spec = file.specs.back().json;
        spec["signature"]["CASE"] = "constexpr";
        spec["constants"]["CASE"] = {{"i", i}};
      }
      file.kernels = with_specs(file_of({})).kernels;
      for (const Json& spec : job.args["cases"]) {
        auto name = spec["name"].get<std::string>();
        auto own = std::find(kOwnTrace.begin(), kOwnTrace.end(), name);
        std::string failed = own == kOwnTrace.end() ? "" : happens("record " + name);
        if (!failed.empty()) {
          failures.push_back({{"case", name}, {"failure", failure_json(failed)}});
          continue;
        }
        CaseTrace trace = with_specs(file_of({small_trace(name, {4})})).cases[0];
        TraceChoice& choice = trace.tape[1].choices[0];
        choice.spec = own == kOwnTrace.end() ? 0 : own - kOwnTrace.begin() + 1;
        choice.args.emplace_back("CASE", int_arg(choice.spec));
        if (what == "library call") {
          trace.tape.push_back(call_step("aten.mul_.Tensor", {1}, 1));
          trace.tape.back().args.push_back(float_arg(1));
        }
        file.cases.push_back(std::move(trace));
      }
      Json header = {{"nonce", nonce}, {"ok", true}};
      if (!failures.empty()) header["failures"] = failures;
      return exited(header, write_trace_file(file));
    });
  }

  JobAnswer interpret(const Job& job, const std::string& nonce) {
    float x = 0;
    std::string_view tensors = std::string_view(job.payload).substr(job.args["tensors"].get<size_t>());
    std::memcpy(&x, tensor_from(job.args["inputs"][0], tensors).bytes.data(), sizeof x);
    std::string input = inputs_.at(static_cast<size_t>(x) - 1);
    bool launches = job.args["launches"].get<bool>();
    if (launches && input == "full 0") {
      input = Names{"tiny", "full 0", "full 0 again"}.at(full_runs_++ + (has_tiny_ ? 1 : 0));
    }
    std::string what = happens(launches ? cat("run ", input) : "run without launches");
    return ended(what, nonce, [&](const std::string&) {
      const float right[4] = {2 * x, -4, 6, 8}, wrong[4] = {2 * x, -4, 6, 7}, nan[4] = {2 * x, NAN, 6, 8};
      bool is_right = launches ? what != "wrong" && what != "nan" : what == "same answer";
      Json header = {{"nonce", nonce},
                     {"ok", true},
                     {"outputs", ref("float32", 0, 16)},
                     {"inputs_after", Json::array({nullptr})},
                     {"kept", Json::array()},
                     {"programs", 1},
                     {"guards_broken", Json::array()}};
      if (what == "guard broken") header["guards_broken"].push_back(1);
      if (what == "input changed") header["inputs_after"][0] = ref("float32", 0, 16);
      return exited(header, bytes_of(is_right ? right : what == "nan" ? nan : wrong));
    });
  }

  std::mutex mutex_;  // Kernels are compiled side by side.
  Script script_;
  bool has_tiny_;
  Names inputs_;
  std::vector<int64_t> seeds_;  // Of the inputs drawn as the task is written.
  size_t full_runs_ = 0;        // On the original's first input, in this attempt.
};

// --- Under test.

struct Combination {
  bool multi_input, staged, curriculum, calibrated;
};

Config config_of(const Combination& on) {
  Config config = load_config<Config>({}, {cat("data.sampler.adaptive.window=", kWindow),
                                           "cases.multi_input.list=[original, doubled, reseeded, larger, precision]"});
  config.cases.type = on.multi_input ? "multi_input" : "original";
  config.stages.type = on.staged ? "staged" : "all";
  config.data.sampler.type = on.curriculum ? "adaptive" : "fixed_mix";
  config.timing.type = on.calibrated ? "calibrated" : "plain";
  config.verify.workers = 1;
  return config;
}

Verdict verify(const Play& play, const Task& given, const Config& config) {
  Candidate one;
  one.id = "c";
  one.task = given;
  one.task.source = cat(play.has_sizes ? "N = 64\n" : "", "class Model: pass\n");
  if (play.has_tiny) one.task.tiny = {{"N", 2}};
  one.is_code = !play.script.count("extract");
  one.text = !one.is_code ? "I cannot do that." : play.script.count("syntax") ? "x = (\n" : "x = 1\n";
  VerifySeams seams = make_verify_seams(config);
  Actor actor(play.script, play.has_tiny);
  auto verifier = verifier_over([&](const Job& job, const std::string& nonce) { return actor.answer(job, nonce); },
                                config.verify, seams,
                                [&](const Json& question, const std::string& payload, std::string* tensors) {
                                  return actor.judge(question, payload, tensors);
                                });
  return verifier->verify({&one, 1})[0];
}

Reported reported(const Verdict& verdict) {
  Reported out;
  for (const CaseResult& one : verdict.cases) {
    out.emplace_back(one.name, one.outcome() ? to_string(*one.outcome()) : "skipped");
  }
  return out;
}

// What the shapes of reward.h give, written out. None for a harness fault.
std::optional<double> expected_reward(const std::string& shape, const Expected& expected, double speedup, bool timed) {
  if (expected.outcome == Outcome::kHarnessFault) return std::nullopt;
  bool correct = expected.outcome == Outcome::kPass;
  double speed = correct ? std::min(timed ? speedup : 1, 2.0) : 0;
  if (shape == "binary") return correct;
  if (shape == "speed") return speed;
  if (shape == "hierarchical") return correct + 0.1 * speed;
  if (correct) return 0.7 + (timed ? 0.3 * std::min(speedup / 2, 1.0) : 0);
  static const std::map<Stage, size_t> kStep = {
      {Stage::kExtract, 0}, {Stage::kSyntax, 0}, {Stage::kCompile, 1}, {Stage::kTinyRun, 2}, {Stage::kFullRun, 3}};
  static const double kSteps[2][4] = {{0.0, 0.1, 0.2, 0.3}, {0.0, 0.3, 0.5, 0.7}};
  return kSteps[shape == "published"][kStep.at(expected.stopped_at)];
}

void expect_rewards(const Verdict& verdict, const Expected& expected, double speedup, bool timed) {
  for (const char* shape : {"staged", "published", "binary", "speed", "hierarchical"}) {
    RewardConfig config;
    config.shape = *named<RewardShape>(shape);
    auto got = reward(verdict, config), wanted = expected_reward(shape, expected, speedup, timed);
    EXPECT_EQ(got.has_value(), wanted.has_value()) << shape;
    EXPECT_NEAR(got.value_or(-1), wanted.value_or(-1), 1e-9) << shape;
  }
}

// What a GPU would add to a correct candidate: readings without noise at a known ratio, through a protocol.
void time_at(double ratio, const TimingProtocol& protocol, Verdict* verdict) {
  std::vector<Reading> readings;
  while (protocol.want_more(readings)) {
    readings.push_back({ratio * 1e-3, 1e-3, 1500, static_cast<int64_t>(readings.size() / 10), 1e-2});
  }
  verdict->timing = protocol.reduce(readings);
  ASSERT_TRUE(verdict->timing.has_value());
  apply_band(&*verdict->timing, protocol.least_band());
  verdict->speedup = verdict->timing->speedup;
}

std::vector<Task> six_tasks() {
  std::vector<Task> tasks(6);
  for (size_t i = 0; i < tasks.size(); ++i) {
    tasks[i].id = cat("task", i);
    tasks[i].level = i % 2 == 0 ? 1 : 2;
  }
  return tasks;
}

class StageScripts : public testing::TestWithParam<int> {
 protected:
  StageScripts() : on_{bool(GetParam() & 1), bool(GetParam() & 2), bool(GetParam() & 4), bool(GetParam() & 8)} {}

  // Verifies one script and returns whether the model says that it passes; empty = a harness fault.
  std::optional<bool> check(const Play& play, const Task& task, double ratio) {
    SCOPED_TRACE(print(play));
    Expected expected = Model(play, on_.multi_input, on_.staged).verdict();
    Verdict verdict = verify(play, task, config_);
    EXPECT_STREQ(to_string(verdict.outcome), to_string(expected.outcome)) << verdict.reason();
    EXPECT_STREQ(to_string(verdict.stopped_at), to_string(expected.stopped_at)) << verdict.reason();
    EXPECT_EQ(reported(verdict), expected.cases);
    EXPECT_EQ(verdict.task_id, task.id);
    EXPECT_EQ(verdict.level, task.level);
    EXPECT_FALSE(verdict.timing || verdict.speedup) << "without a GPU nothing is measured";
    expect_rewards(verdict, expected, 0, false);
    if (verdict.correct()) {
      time_at(ratio, *config_.timing.make(), &verdict);
      expect_rewards(verdict, expected, ratio, true);
    }
    ends_.insert({expected.stopped_at, expected.outcome});
    if (expected.outcome == Outcome::kHarnessFault) return std::nullopt;
    return expected.outcome == Outcome::kPass;
  }

  Combination on_;
  Config config_ = config_of(on_);
  std::set<std::pair<Stage, Outcome>> ends_;
};

TEST_P(StageScripts, VerdictCasesAndRewardAreTheModels) {
  auto sampler = config_.data.sampler.make(six_tasks());
  Rng rng(41);
  double share = on_.curriculum ? 0.1 : 0.5, drawn2 = 0, due2 = 0, lowest = 1, highest = 0;
  std::deque<bool> window;  // Level-1 rollouts.
  int64_t faults = 0;
  for (int64_t done = 0; done < kScripts && !HasFailure(); done += kBatch) {
    std::vector<TaskResult> results;
    for (const Task* task : sampler->next(kBatch)) {
      drawn2 += task->level == 2;
      // Less befalls later candidates, as if the policy had learnt.
      Play play = random_play(rng, rng.below(3) + std::max<int64_t>(0, 9 - 12 * done / kScripts));
      auto passes = check(play, *task, 0.25 * static_cast<double>(1 + rng.below(12)));
      faults += !passes;
      if (!passes) continue;  // Dropped.
      results.push_back({task->id, task->level, 1, *passes});
      if (task->level == 1) window.push_back(*passes);
      if (window.size() > kWindow) window.pop_front();
    }
    due2 += static_cast<double>(kBatch) * share;
    EXPECT_NEAR(drawn2, due2, 1 + 1e-9) << "after " << done + kBatch << " draws";
    sampler->observe(results);
    if (!on_.curriculum) continue;
    auto correct = static_cast<double>(std::count(window.begin(), window.end(), true));
    double accuracy = window.empty() ? 0 : correct / static_cast<double>(window.size());
    share = 0.1 + 0.4 * std::min(accuracy / 0.4, 1.0);
    EXPECT_NEAR(sampler->metrics().at("sampler/level2_share"), share, 1e-12);
    lowest = std::min(lowest, share);
    highest = std::max(highest, share);
  }
  // The scripts are of use: most ways to end come up, and the curriculum goes from one end to the other.
  EXPECT_GT(faults, kScripts / 20);
  EXPECT_GE(ends_.size(), 20u);
  if (on_.curriculum) {
    EXPECT_LT(lowest, 0.2);
    EXPECT_NEAR(highest, 0.5, 1e-12);
  }
}

std::string name_of(const testing::TestParamInfo<int>& info) {
  const char* names[] = {"MultiInput", "Staged", "Curriculum", "Calibrated"};
  std::string out = "Core";
  for (int i = 0; i < 4; ++i) out += info.param >> i & 1 ? names[i] : "";
  return out;
}

INSTANTIATE_TEST_SUITE_P(AllExtensions, StageScripts, testing::Range(0, 16), name_of);

}  // namespace
}  // namespace tritonrl::stage_scripts_test
