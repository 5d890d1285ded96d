// SPDX-License-Identifier: Apache-2.0
#include "app/train/step_metrics.h"

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>

#include "app/device_memory.h"

namespace tritonrl::step_metrics_test {
namespace {

using testing::HasSubstr;

Verdict verdict(const std::string& task, Rule rule, Stage stage, double seconds) {
  Verdict v;
  v.task_id = task;
  v.outcome = outcome_of(rule);
  v.stopped_at = stage;
  v.stages = {{Stage::kExtract, 0.001, {}}, {stage, seconds, rule}};
  return v;
}

TEST(StepMetrics, CountWhatOneStepBrought) {
  Verdict right = verdict("a", Rule::kPass, Stage::kFullRun, 2);
  right.triton_compile_s = 0;
  Verdict other = verdict("a", Rule::kNoLaunch, Stage::kCompile, 4);
  Verdict sent = verdict("b", Rule::kForgedResult, Stage::kCompile, 8);
  auto sample = [](const std::string& text, bool finished, const Verdict& verdict, double reward) {
    Sample one{{{1, 2, 3}, {-1, -1, -1}, finished, text}, verdict};
    one.reward = one.to_go = Reward{reward};
    return one;
  };
  Rollouts rollouts;
  rollouts.groups.resize(2);
  rollouts.groups[0].samples = {sample("a0", true, right, 1), sample("a1", false, other, 0)};
  rollouts.groups[1].samples = {sample("b0", true, sent, 0.5), sample("b0", false, sent, 0.5)};  // The same again.
  rollouts.times = {2, 8, 7, 0.5, 12, 4, 1.5, 0.25, 0.125};
  rollouts.tokens = 12;
  rollouts.staleness = 1;
  TrainSummary update;
  update.steps = 3;
  update.tokens = 500;
  update.seconds = 5;
  Json line = step_metrics({7, rollouts, {}, 1, 4, update, 0.25, 0, 20});
  const std::map<std::string, double> expected = {{"step", 7},
                                                  {"reward/mean", 0.5},
                                                  {"reward/zero_variance_share", 0.5},
                                                  {"correct_rate", 0.25},
                                                  {"pass_at_1", 0.25},
                                                  {"length/mean", 3},
                                                  {"length/cut_off_share", 0.5},
                                                  {"verify/outcome/tampered", 2},
                                                  {"verify/outcome_share/pass", 0.25},
                                                  {"verify/rejected/rule_break/no_launch", 1},
                                                  {"verify/rejected/tampered/forged_result", 2},
                                                  {"verify/rejected_share", 0.75},
                                                  {"verify/same_answers", 1},
                                                  {"verify/kernels_known_share", 1},
                                                  {"verify/candidates_per_s", 0.5},
                                                  {"time/stage/compile/median", 6},
                                                  {"time/stage/compile/p95", 7.8},
                                                  {"time/stage/full_run/median", 2},
                                                  {"time/phase/rollout", 2},
                                                  {"time/phase/verify", 8},
                                                  {"time/phase/verify_alone", 7},
                                                  {"time/rollout_gave_way", 0.5},
                                                  {"time/wait_rollout", 1.5},
                                                  {"time/wait_verify", 0.25},
                                                  {"time/idle", 0.125},
                                                  {"staleness", 1},
                                                  {"rollout/tokens_per_s", 6},
                                                  {"update/tokens_per_s", 100},
                                                  {"grad_norm", 0.25},
                                                  {"harness_faults", 0}};
  for (const auto& [name, value] : expected) {
    ASSERT_TRUE(line.contains(name)) << name;
    EXPECT_NEAR(line[name].get<double>(), value, 1e-12) << name;
  }
  EXPECT_FALSE(line.contains("memory/device_peak_bytes"));
  EXPECT_FALSE(line.contains("policy/entropy"));  // Nothing was trained with a policy loss.
}

std::string advised(const std::function<void()>& fn) {
  try {
    with_memory_advice("rl 3", "rl.train.micro_batch_tokens", fn);
  } catch (const Error& e) {
    return cat("exit code ", e.exit_code(), ": ", e.what());
  } catch (const std::exception& e) {
    return cat("not ours: ", e.what());
  }
  return "";
}

TEST(MemoryAdvice, NamesWhatToLowerWhereMemoryRanOutAndOnlyThere) {
  const std::string hint = "hint: lower rl.train.micro_batch_tokens";
  EXPECT_THAT(advised([] { at::empty({int64_t{1} << 56}, at::kByte); }),
              testing::AllOf(HasSubstr("exit code 3: memory ran out while rl 3"), HasSubstr(hint)));
  EXPECT_THAT(advised([] { throw std::bad_alloc(); }), HasSubstr(hint));
  EXPECT_THAT(advised([] { TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA: tried to allocate 2 GiB"); }),
              testing::AllOf(HasSubstr("tried to allocate 2 GiB"), HasSubstr(hint)));
  EXPECT_THAT(advised([] { throw std::runtime_error("CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate"); }),
              HasSubstr(hint));
  EXPECT_THAT(advised([] { throw std::runtime_error("shapes differ"); }), HasSubstr("not ours: shapes differ"));
  EXPECT_THAT(advised([] { throw usage_error("out of memory of names"); }),
              testing::StrEq("exit code 2: out of memory of names"));
  EXPECT_EQ(with_memory_advice("x", "y", [] { return 5; }), 5);
}

}  // namespace
}  // namespace tritonrl::step_metrics_test
