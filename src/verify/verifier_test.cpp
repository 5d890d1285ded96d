// SPDX-License-Identifier: Apache-2.0
// The verifier over scripted workers: secret seeds, skipped stages, many candidates, task lint.
#include "verify/verifier.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "base/error.h"
#include "base/log.h"
#include "base/rng.h"
#include "support/fake_jobs.h"
#include "support/trial.h"

namespace tritonrl::verifier_test {
namespace {

using namespace trial;  // NOLINT(google-build-using-namespace)

TEST(Stages, SeedsAreSecretAndReproducible) {
  auto seeds = [](int64_t seed, std::set<int64_t>* recorder_saw) {
    VerifyConfig config;
    config.seed = seed;
    std::vector<std::string> told;  // To children.
    Trial trial = run(
        [&](const Job& job, const std::string& nonce) {
          bool candidates = kind_of(job) == "record";
          EXPECT_FALSE(candidates && job.args.contains("weight_seed")) << "who runs host code is told no seed";
          if (kind_of(job) == "reference" && recorder_saw) {
            recorder_saw->insert(job.args["weight_seed"].get<int64_t>());
          }
          told.push_back(job.args.dump());
          return honest_answer(job, nonce);
        },
        candidate(), config);
    EXPECT_EQ(trial.noise.size(), 1u);  // Of one task.
    std::set<int64_t> secrets = trial.inputs;
    secrets.insert(trial.noise.begin(), trial.noise.end());
    for (int64_t secret : secrets) {
      for (const std::string& text : told) EXPECT_EQ(text.find(std::to_string(secret)), std::string::npos);
    }
    for (int64_t noise : trial.noise) EXPECT_FALSE(recorder_saw && recorder_saw->count(noise) > 0);
    return trial.inputs;
  };
  std::set<int64_t> weights;
  constexpr int64_t five = 5'000'000'000, six = 6'000'000'000;
  EXPECT_EQ(seeds(five, &weights), seeds(five, &weights));
  EXPECT_EQ(weights.size(), 1u);
  EXPECT_EQ(seeds(five, nullptr).size(), 3u);
  EXPECT_NE(seeds(five, nullptr), seeds(six, nullptr));
  EXPECT_NE(seeds(0, nullptr), seeds(0, nullptr));
}

// What a child is told must not lead to the inputs in fewer steps than guessing the configured seed takes.
TEST(Stages, WeightSeedsDoNotGiveTheInputsAway) {
  VerifyConfig config;
  for (int64_t small : {int64_t{-1}, int64_t{1}, int64_t{42}, (int64_t{1} << 32) - 1}) {
    config.seed = small;
    EXPECT_THROW(config.validate(), Error) << small;
  }
  config.seed = int64_t{1} << 32;
  EXPECT_NO_THROW(config.validate());
  std::set<int64_t> told;
  auto remembering = [&](const Job& job, const std::string& nonce) {
    if (kind_of(job) == "reference") told.insert(job.args["weight_seed"].get<int64_t>());
    return honest_answer(job, nonce);
  };
  double start = now_s();
  run(remembering, candidate(), config);
  EXPECT_GT(now_s() - start, 0.005);  // Each guess costs as much.
  // Not the stream of the configured number itself.
  auto plain = Rng(uint64_t{1} << 32).at("weights").at(candidate().task.source).next_u64() >> 1 & 0x7fffffff;
  EXPECT_FALSE(told.count(static_cast<int64_t>(plain)));
}

TEST(Stages, SkippedStages) {
  VerifyConfig config;
  config.skip_stages = {Stage::kSyntax, Stage::kTinyRun};
  Trial r = run(honest_answer, candidate(), config);
  EXPECT_TRUE(r.verdict.correct());
  EXPECT_EQ(r.verdict.stages.size(), 3u);
  EXPECT_TRUE(r.verdict.passed(Stage::kTinyRun));
  EXPECT_EQ(load_config<VerifyConfig>({}, {"skip_stages=[tiny_run]"}).skip_stages, std::vector{Stage::kTinyRun});
  EXPECT_THROW(load_config<VerifyConfig>({}, {"skip_stages=[tiny-run]"}), Error);
  config.skip_stages = {Stage::kCompile};
  EXPECT_THROW(config.validate(), Error);
  config.skip_stages = {};
  config.seeds_per_case = 1;
  EXPECT_THROW(config.validate(), Error);
}

TEST(Verifier, KeepsOrderReportsProgressAndVerifiesEqualCandidatesOnce) {
  auto pool = std::make_unique<FakePool>(honest_answer);
  FakePool* jobs = pool.get();
  VerifyConfig config;
  config.workers = 4;
  auto verifier = Verifier::over(std::move(pool), fake_judge(honest_judge), config);
  std::vector<Candidate> batch;
  for (int i = 0; i < 40; ++i)
    batch.push_back(candidate(cat("c", i), cat("x = ", i % 10, i % 7 == 0 ? "(" : "", "\n")));
  int64_t last = 0;
  auto verdicts = verifier->verify(batch, [&](int64_t done) { EXPECT_EQ(done, ++last); });
  EXPECT_EQ(last, 40);
  std::set<std::string> different;
  for (size_t i = 0; i < batch.size(); ++i) {
    EXPECT_EQ(verdicts[i].candidate_id, batch[i].id);
    EXPECT_EQ(verdicts[i].outcome, i % 7 == 0 ? Outcome::kSyntaxError : Outcome::kPass);
    if (i % 7) different.insert(batch[i].text);
  }
  EXPECT_EQ(jobs->count("record"), static_cast<int64_t>(different.size()));
  EXPECT_EQ(jobs->count("reference"), 1);  // One task: its trace is shared.
}

TEST(Verifier, AnExceptionIsOneCandidatesFault) {
  VerifyConfig config;
  config.workers = 1;
  for (const char* kind : {"reference", "record", "interpret"}) {
    std::atomic<int> calls{0};
    auto verifier = verifier_over(lying(kind,
                                        [&](const Job& job, const std::string& nonce) {
                                          if (calls++ == 0) throw std::runtime_error("out of luck");
                                          return honest_answer(job, nonce);
                                        }),
                                  config);
    std::vector<Candidate> batch = {candidate("a", "x = 1\n"), candidate("b", "x = 2\n")};
    auto verdicts = verifier->verify(batch);
    EXPECT_EQ(verdicts[0].outcome, Outcome::kHarnessFault) << kind;
    EXPECT_NE(verdicts[0].reason().find("out of luck"), std::string::npos) << verdicts[0].reason();
    EXPECT_EQ(verdicts[1].outcome, Outcome::kPass) << kind << ": " << verdicts[1].reason();
  }
}

TEST(Verifier, LintRejectsTasksThatCannotFail) {
  std::vector<Json> asked;
  // The judge finds `flag`, in the tiny case the first `tiny` times, in the full one always or never.
  auto lint = [&](const char* flag, int tiny, bool full) {
    asked.clear();
    auto judge = [&, tiny](const Json& question, const std::string& payload, std::string* tensors) mutable {
      Json reply = honest_judge(question, payload, tensors);
      if (question["do"] != "lint") return reply;
      asked.push_back(question);
      if (question["case"] == "tiny" ? tiny-- > 0 : full) reply["flags"].push_back({flag, "zeros would pass"});
      return reply;
    };
    return verifier_over(honest_answer, {}, {}, judge)->lint(candidate().task);
  };
  EXPECT_EQ(lint("control", 0, false), "");
  EXPECT_EQ(asked.size(), 2u);
  EXPECT_EQ(lint("control", 0, true), "control in case full: zeros would pass");
  EXPECT_EQ(lint("drop", 9, true), "");  // An operation that nobody misses is no reason.
  // Few numbers that are zero once by chance; twice is none.
  EXPECT_EQ(lint("control", 1, false), "");
  ASSERT_EQ(asked.size(), 3u);
  EXPECT_EQ(asked[1]["input_seeds"][0], asked[2]["input_seeds"][1]);
  EXPECT_NE(asked[1]["input_seeds"][0], asked[2]["input_seeds"][0]);
  EXPECT_EQ(lint("control", 2, false), "control in case tiny: zeros would pass");
  auto fails = lying("reference", [](const Job&, const std::string& nonce) { return failure(nonce, "unsupported"); });
  EXPECT_EQ(verifier_over(fails)->lint(candidate().task), "unrecordable: no luck");
}

}  // namespace
}  // namespace tritonrl::verifier_test
