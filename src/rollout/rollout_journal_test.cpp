// SPDX-License-Identifier: Apache-2.0
#include "rollout/rollout_journal.h"

#include <gtest/gtest.h>

#include "base/files/json.h"
#include "support/made_up_finding.h"

namespace tritonrl::rollout_journal_test {
namespace {

namespace fs = std::filesystem;

class RolloutJournalTest : public testing::Test {
 protected:
  void SetUp() override { fs::remove_all(file_.parent_path()); }
  RolloutJournal open(const std::string& work = "step 3") const { return RolloutJournal(file_, work); }

  const fs::path file_ = fs::path(testing::TempDir()) / "tritonrl_journal" / "deep" / "pending.jsonl";
  const Generated answer_{{5, 300, 7}, {-0.1f, -1.0f / 3, -1e-7f}, true};
};

Verdict verdict(Outcome outcome) {
  Verdict out;
  out.candidate_id = "t#1";
  out.task_id = "t";
  out.level = 2;
  out.outcome = outcome;
  out.stopped_at = Stage::kCompile;
  out.stages = {{Stage::kCompile, 0.1 + 0.2, made_up_finding(outcome, "said")}};
  return out;
}

TEST_F(RolloutJournalTest, HoldsWhatWasNotedBitForBit) {
  {
    RolloutJournal journal = open();
    EXPECT_EQ(journal.answers_found() + journal.verdicts_found(), 0);
    journal.note(1, 0, answer_);
    journal.note(2, 0, Generated{{1}, {-2.5f}, false});
    journal.note(1, 0, verdict(Outcome::kCompileError));
    journal.note(1, 1, verdict(Outcome::kHarnessFault));
    journal.sync();
  }
  RolloutJournal journal = open();
  EXPECT_EQ(journal.answers_found(), 2);
  EXPECT_EQ(journal.verdicts_found(), 1);
  ASSERT_TRUE(journal.answer(1, 0));
  EXPECT_EQ(journal.answer(1, 0)->tokens, answer_.tokens);
  EXPECT_EQ(journal.answer(1, 0)->log_probs, answer_.log_probs);
  EXPECT_TRUE(journal.answer(1, 0)->finished);
  EXPECT_FALSE(journal.answer(2, 0)->finished);
  EXPECT_FALSE(journal.answer(1, 1));
  ASSERT_TRUE(journal.verdict(1, 0));
  EXPECT_EQ(to_json(*journal.verdict(1, 0)), to_json(verdict(Outcome::kCompileError)));
  EXPECT_FALSE(journal.verdict(2, 0));
  EXPECT_FALSE(journal.verdict(1, 1)) << "a harness fault is tried again";
  journal.remove();
  EXPECT_FALSE(fs::exists(file_));
}

TEST_F(RolloutJournalTest, ALineThatWasCutIsWrittenAgain) {
  open().note(1, 0, answer_);
  const std::string whole = read_file(file_);
  open().note(1, 1, answer_);
  fs::resize_file(file_, fs::file_size(file_) - 4);
  {
    RolloutJournal journal = open();
    EXPECT_EQ(journal.answers_found(), 1);
    EXPECT_EQ(read_file(file_), whole);
    journal.note(1, 1, answer_);
  }
  EXPECT_EQ(open().answers_found(), 2);
}

TEST_F(RolloutJournalTest, OtherWorkOrADamagedFileIsBegunAnew) {
  open().note(1, 0, answer_);
  EXPECT_EQ(open("step 4").answers_found(), 0);
  EXPECT_EQ(open().answers_found(), 0) << "it was of step 4";
  open().note(1, 0, answer_);
  std::string bytes = read_file(file_);
  for (const std::string& damaged :
       {bytes.substr(0, bytes.size() - 20) + std::string(19, '\0') + "\n", bytes + "{\"turn\": 1}\n",
        bytes + "{\"turn\":1,\"candidate\":0,\"verdict\":{}}\n", std::string("\n"), std::string()}) {
    write_file(file_, damaged);
    EXPECT_EQ(open().answers_found(), 0);
    EXPECT_EQ(open().answers_found(), 0);
  }
}

}  // namespace
}  // namespace tritonrl::rollout_journal_test
