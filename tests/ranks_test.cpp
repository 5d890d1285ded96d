// SPDX-License-Identifier: Apache-2.0
// The program as several ranks: what they do together, and what becomes of a run of which one is killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <numeric>
#include <thread>

#include "base/files/json.h"
#include "base/process/build_paths.h"
#include "base/text.h"
#include "support/run_program.h"

namespace tritonrl::ranks_test {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

std::string bytes_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class ProgramRanks : public testing::Test {
 protected:
  void SetUp() override {
    model_ = source_dir() + "/models/smollm2-135m-instruct";
    if (!fs::exists(model_ + "/config.json")) GTEST_SKIP() << model_ << " is missing: ./test.sh imports it";
    folder_ = fs::path(testing::TempDir()) / "tritonrl_ranks_test";
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::vector<std::string> command(const std::string& name, const std::vector<std::string>& more) const {
    std::vector<std::string> words = {"train", source_dir() + "/configs/quickstart.yaml"};
    std::vector<std::string> sets = {"run.name=" + name,
                                     "run.folder=" + folder_.string(),
                                     "policy.model=" + model_,
                                     "policy.device=cpu",
                                     "data.split.train_level1=4",
                                     "data.split.train_level2=2",
                                     "data.split.rl_level1=2",
                                     "data.split.rl_level2=2",
                                     "data.split.heldout_level1=2",
                                     "data.split.heldout_level2=1",
                                     "sft.batch_size=4",
                                     "lora.dropout=0",
                                     "eval.samples=2",
                                     "eval.sampling.max_new_tokens=12",
                                     "rl.algorithm=reinforce",
                                     "rl.steps=1",
                                     "rl.tasks_per_step=3",
                                     "rl.samples=2",
                                     "rl.sampling.max_new_tokens=12",
                                     "rl.advantage.baseline=moving",
                                     "rl.loss.entropy=0.01",
                                     "verify.seed=4294967311"};
    for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
    for (const std::string& word : more) words.push_back(word);
    return words;
  }
  std::vector<Json> steps(const std::string& name, const std::string& phase) const {
    std::vector<Json> out;
    for_each_json_line(folder_ / name / "steps.jsonl", [&](int64_t, const Json& line) {
      if (line.at("phase") == phase) out.push_back(line);
    });
    return out;
  }
  // Kills that rank of a run as soon as `ready`; returns the seconds from then to the end of the run.
  Ended run_and_kill(const std::vector<std::string>& words, const std::string& name, int64_t rank,
                     const std::function<bool()>& ready, double* seconds) const {
    using Clock = std::chrono::steady_clock;
    Clock::time_point killed_at;
    bool killed = false;
    std::thread killer([&] {
      for (int i = 0; i < 1800 && !ready(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
      for (const auto& entry : fs::directory_iterator("/proc")) {
        if (bytes_of(entry.path() / "cmdline").find("run.name=" + name) == std::string::npos) continue;
        if (bytes_of(entry.path() / "environ").find(cat('\0', "RANK=", rank, '\0')) == std::string::npos) continue;
        killed_at = Clock::now();
        killed = ::kill(std::stoi(entry.path().filename().string()), SIGKILL) == 0;
      }
    });
    Ended ended = run(words);
    auto end = Clock::now();
    killer.join();
    EXPECT_TRUE(killed) << ended.said;
    *seconds = std::chrono::duration<double>(end - killed_at).count();
    return ended;
  }

  std::string model_;
  fs::path folder_;
};

TEST_F(ProgramRanks, ThreeAnswerAndLearnWhatOneDoes) {
  Ended one = run(command("one", {"--set", "sft.enabled=false"}));
  ASSERT_EQ(one.code, 0) << one.said;
  Ended three = run(command("three", {"--set", "sft.enabled=false", "--ranks", "3"}));
  ASSERT_EQ(three.code, 0) << three.said;
  EXPECT_THAT(three.said, HasSubstr("sampling: 2/2 answers")) << "six answers, two a rank";
  EXPECT_THAT(three.said, HasSubstr("results: "));
  EXPECT_EQ(three.said.find("results: "), three.said.rfind("results: ")) << "rank 0 alone tells of it";
  const char* samples = "rollouts/step_000001.jsonl";
  EXPECT_EQ(bytes_of(folder_ / "three" / samples), bytes_of(folder_ / "one" / samples));
  auto alone = steps("one", "rl/step_1/update"), together = steps("three", "rl/step_1/update");
  ASSERT_EQ(alone.size(), 1u);
  ASSERT_EQ(together.size(), 1u);
  EXPECT_EQ(together[0]["tokens"], alone[0]["tokens"]);
  EXPECT_GT(alone[0]["grad_norm"], 0.0);
  for (const char* number : {"loss", "grad_norm", "policy/entropy"}) {
    double want = alone[0][number].get<double>();
    EXPECT_NEAR(together[0][number].get<double>(), want, 1e-3 * std::abs(want)) << number;
  }
  EXPECT_TRUE(fs::exists(folder_ / "three/checkpoints/rl_1/adapter_model.safetensors"));
  EXPECT_TRUE(fs::is_empty(folder_ / "three/ranks/1/checkpoints"));
}

TEST_F(ProgramRanks, WhereOneIsKilledAllEndAndAnotherNumberGoesOn) {
  auto words = command("killed", {"--set", "sft.epochs=4"});
  auto three = words;
  three.insert(three.end(), {"--ranks", "3"});
  double seconds = 0;
  Ended ended = run_and_kill(
      three, "killed", 2,
      [&] { return bytes_of(folder_ / "killed/ranks/2/steps.jsonl").find("\"sft\"") != std::string::npos; }, &seconds);
  EXPECT_EQ(ended.code, 128 + SIGKILL) << ended.said;
  EXPECT_LT(seconds, 30);
  EXPECT_THAT(ended.said, HasSubstr("rank 2 was ended by signal 9"));
  EXPECT_THAT(ended.said, HasSubstr("the same command continues"));
  EXPECT_FALSE(fs::exists(folder_ / "killed/checkpoints/sft"));

  Ended alone = run(words);  // Where three began.
  ASSERT_EQ(alone.code, 0) << alone.said;
  std::vector<int64_t> updates, want(8);
  for (const Json& line : steps("killed", "sft")) updates.push_back(line.at("step").get<int64_t>());
  std::iota(want.begin(), want.end(), 1);
  EXPECT_EQ(updates, want) << "each once";
  EXPECT_TRUE(fs::exists(folder_ / "killed/results.json"));
  Ended again = run(three);  // A finished run has nothing left for anybody.
  EXPECT_EQ(again.code, 0) << again.said;
}

TEST_F(ProgramRanks, HalfOfWhoIsWhoIsRefused) {
  ::setenv("WORLD_SIZE", "2", 1);
  ::setenv("RANK", "0", 1);
  ::setenv("LOCAL_RANK", "0", 1);
  Ended half = run(command("half", {}));
  for (const char* name : {"WORLD_SIZE", "RANK", "LOCAL_RANK"}) ::unsetenv(name);
  EXPECT_EQ(half.code, 2);
  EXPECT_THAT(half.said, HasSubstr("WORLD_SIZE=2 without MASTER_ADDR"));
  EXPECT_THAT(half.said, HasSubstr("torchrun --no-python"));
}

}  // namespace
}  // namespace tritonrl::ranks_test
