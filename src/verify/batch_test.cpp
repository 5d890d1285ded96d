// SPDX-License-Identifier: Apache-2.0
// Batches: bad lines are named, results stream out, and a batch that was stopped continues where it was.
#include "verify/batch.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/error.h"
#include "base/text.h"
#include "support/fake_judge.h"
#include "support/fake_worker.h"

namespace tritonrl::batch_test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTask =
    "import torch\nclass Model(torch.nn.Module):\n  pass\ndef get_inputs():\n  return []\ndef get_init_inputs():\n  "
    "return []\n";

class Batch : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / cat("batch_", getpid(), "_", random_hex(4));
    fs::create_directories(folder_);
    write_file(folder_ / "task.py", kTask);
    write_file(folder_ / "candidate.py", "x = 1\n");
    write_file(folder_ / "answer.md", "```python\nx = 2\n```\n");
    // Every reference fails: enough to see who is asked for a verdict, and how often.
    auto pool = std::make_unique<FakePool>([](const Job&, const std::string& nonce) {
      JobAnswer answer;
      answer.status = JobAnswer::Status::kExited;
      answer.result = blob_bytes({{"nonce", nonce},
                                  {"ok", false},
                                  {"failure", {{"rule", "init_failed"}, {"phase", "init"}, {"message", "no"}}}});
      return answer;
    });
    verifier_ = Verifier::over(std::move(pool), fake_judge(nullptr), {});
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string job(const std::string& id, Json candidate, Json task = "task.py") {
    return json_line({{"id", id}, {"task", task}, {"candidate", candidate}}) + "\n";
  }
  void jobs(const std::string& text) { write_file(folder_ / "jobs.jsonl", text); }
  BatchResult run() { return run_batch(*verifier_, folder_ / "jobs.jsonl", folder_ / "out.jsonl"); }
  std::vector<Verdict> out() {
    std::vector<Verdict> verdicts;
    for_each_json_line(folder_ / "out.jsonl",
                       [&](int64_t, const Json& json) { verdicts.push_back(verdict_from_json(json, "out")); });
    return verdicts;
  }
  void expect_error(const std::string& text, const std::string& line, const std::string& what) {
    jobs(text);
    try {
      run();
      FAIL() << "no error for " << text;
    } catch (const Error& error) {
      EXPECT_NE(error.where().find(cat("jobs.jsonl:", line)), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
      EXPECT_EQ(error.exit_code(), 2);
    }
    EXPECT_FALSE(fs::exists(folder_ / "out.jsonl"));  // Nothing is run when one line is bad.
  }

  fs::path folder_;
  std::unique_ptr<Verifier> verifier_;
};

TEST_F(Batch, ReadsPathsAndInlineTexts) {
  jobs(job("a", "candidate.py") + "\n" + job("b", "answer.md") + job("c", {{"text", "no code here"}}) +
       job("d", {{"text", "```\nx = (\n```"}}, {{"code", kTask}}) +
       job("e", {{"text", "no code"}}, {{"code", kTask}, {"id", "mine"}, {"level", 2}, {"tiny", {{"N", 3}}}}));
  auto candidates = load_jobs(folder_ / "jobs.jsonl");
  ASSERT_EQ(candidates.size(), 5u);
  EXPECT_EQ(candidates[4].task.id, "mine");
  EXPECT_EQ(candidates[4].task.level, 2);
  EXPECT_EQ(candidates[4].task.tiny, (std::map<std::string, int64_t>{{"N", 3}}));
  EXPECT_TRUE(candidates[0].is_code);
  EXPECT_FALSE(candidates[1].is_code);
  EXPECT_FALSE(candidates[2].is_code);
  EXPECT_EQ(candidates[3].task.source, kTask);
  EXPECT_EQ(run().total, 5);
  std::map<std::string, Outcome> outcomes;
  for (const Verdict& verdict : out()) outcomes[verdict.candidate_id] = verdict.outcome;
  EXPECT_EQ(outcomes["a"], Outcome::kHarnessFault);
  EXPECT_EQ(outcomes["b"], Outcome::kHarnessFault);
  EXPECT_EQ(outcomes["c"], Outcome::kNoCode);
  EXPECT_EQ(outcomes["d"], Outcome::kSyntaxError);
}

TEST_F(Batch, BadLinesAreNamed) {
  std::string good = job("a", "candidate.py");
  expect_error(good + "{\n", "2", "");
  expect_error(good + "[1]\n", "2", "object");
  expect_error(good + R"({"id": "b", "task": "task.py"})" + "\n", "2", "candidate");
  expect_error(good + R"({"id": 3, "task": "task.py", "candidate": "candidate.py"})" + "\n", "2", "id");
  expect_error(good + R"({"id": "b", "task": "task.py", "candidate": "candidate.py", "canditate": 1})" + "\n", "2",
               "did you mean candidate");
  expect_error(good + job("b", "nowhere.py"), "2", "candidate");
  expect_error(good + job("b", "candidate.py", "nowhere.py"), "2", "nowhere.py");
  expect_error(good + job("b", {{"coed", "x"}}), "2", "text");
  expect_error(good + job("b", {{"code", "x"}, {"text", "x"}}), "2", "text");
  expect_error(good + job("b", {{"code", 1}}), "2", "code");
  expect_error(good + job("b", "candidate.py", {{"code", "x = 1"}}), "2", "Model");
  expect_error(good + job("b", "candidate.py", {{"code", kTask}, {"tinny", 1}}), "2", "tinny");
  expect_error(good + "\n" + good, "3", "twice");
}

TEST_F(Batch, CodeIsAFileAndTextAnAnswer) {
  const std::string file = "class ModelNew:\n  pass\n", fenced = "Here:\n```python\n" + file + "```\n";
  jobs(job("file", {{"code", file}}) + job("answer", {{"text", fenced}}) + job("file as answer", {{"text", file}}) +
       job("answer as file", {{"code", fenced}}) + job("no file", {{"text", "class ModelNew does what you want."}}));
  auto candidates = load_jobs(folder_ / "jobs.jsonl");
  EXPECT_TRUE(candidates[0].is_code);
  EXPECT_EQ(candidates[0].text, file);
  EXPECT_FALSE(candidates[1].is_code);
  EXPECT_EQ(run().unfenced, 1) << "what is Python, and no more, is worth a hint";
  std::map<std::string, Outcome> outcomes;
  for (const Verdict& verdict : out()) outcomes[verdict.candidate_id] = verdict.outcome;
  EXPECT_EQ(outcomes["file"], Outcome::kHarnessFault);  // Got as far as a reference.
  EXPECT_EQ(outcomes["answer"], Outcome::kHarnessFault);
  EXPECT_EQ(outcomes["file as answer"], Outcome::kNoCode);
  EXPECT_EQ(outcomes["answer as file"], Outcome::kSyntaxError);
  EXPECT_EQ(outcomes["no file"], Outcome::kNoCode);
}

TEST_F(Batch, GoesOnWhereItWas) {
  jobs(job("a", {{"text", "x"}}) + job("b", {{"text", "y"}}));
  EXPECT_EQ(run().skipped, 0);
  jobs(job("a", {{"text", "x"}}) + job("b", {{"text", "y"}}) + job("c", {{"text", "z"}}));
  BatchResult again = run();
  EXPECT_EQ(again.skipped, 2);
  EXPECT_EQ(again.total, 3);
  EXPECT_EQ(out().size(), 3u);
  // A record cut short by a full disk is done again; the others stay.
  std::string bytes = read_file(folder_ / "out.jsonl");
  fs::resize_file(folder_ / "out.jsonl", bytes.size() - 20);
  EXPECT_EQ(run().skipped, 2);
  EXPECT_EQ(out().size(), 3u);
}

TEST_F(Batch, UnreadableOutputIsNotOverwritten) {
  jobs(job("a", {{"text", "x"}}));
  write_file(folder_ / "out.jsonl", "{\"id\": 1}\n");
  EXPECT_THROW(run(), Error);
  EXPECT_EQ(read_file(folder_ / "out.jsonl"), "{\"id\": 1}\n");
}

TEST_F(Batch, CountsProgress) {
  std::string text;
  for (int i = 0; i < 20; ++i) text += job(cat("j", i), {{"text", cat("t", i)}});
  jobs(text);
  int64_t last = -1;
  run_batch(*verifier_, folder_ / "jobs.jsonl", folder_ / "out.jsonl", [&](int64_t done, int64_t total) {
    EXPECT_EQ(total, 20);
    EXPECT_EQ(done, last + 1);
    last = done;
  });
  EXPECT_EQ(last, 20);
}

}  // namespace
}  // namespace tritonrl::batch_test
