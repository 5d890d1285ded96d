// SPDX-License-Identifier: Apache-2.0
// The loop of turns, with a policy and a verifier that only say what they were asked.
#include "rollout/conversation.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "base/files/json.h"
#include "base/text.h"
#include "support/made_up_finding.h"

namespace tritonrl::conversation_test {
namespace {

Verdict verdict_of(const std::string& text) {
  Verdict verdict;
  verdict.outcome = text == "right" || text == "fast" ? Outcome::kPass
                    : text == "fault"                 ? Outcome::kHarnessFault
                                                      : Outcome::kRuleBreak;
  verdict.stopped_at = verdict.correct() ? Stage::kTime : Stage::kCompile;
  verdict.stages = {{verdict.stopped_at, 0, made_up_finding(verdict.outcome, cat("about ", text))}};
  if (text == "fast") {
    TimingResult timing;
    timing.reference_s = 2e-6;
    timing.candidate_s = 1e-6;
    timing.ratio = timing.speedup = 2;
    verdict.timing = timing;
  }
  return verdict;
}

// One task; what its trajectories say at turn 1, 2, ...
class Conversation : public testing::Test {
 protected:
  Rollouts hold(const std::vector<std::vector<std::string>>& lines, int64_t turns, const std::string& stop,
                int64_t longest = 1000) {
    Rollouts rollouts;
    Group group;
    group.task.id = "t";
    group.task.source = "SOURCE";
    for (size_t t = 0; t < lines.size(); ++t) {
      group.samples.push_back({{{1}, {0}, true, lines[t][0]}, verdict_of(lines[t][0])});
      group.samples.back().rollout.trajectory = static_cast<int64_t>(t);
    }
    rollouts.groups.push_back(group);
    std::string file = testing::TempDir() + "/conversation_test_feedback.txt";
    write_file(file, "MEND {{feedback}}\n---\nFASTER {{feedback}}");
    TurnRules rules;
    rules.turns = turns;
    rules.stop_when_correct = *named<StopWhenCorrect>(stop);
    rules.prompt = FeedbackPrompt::load(file);
    rules.max_prompt_tokens = longest;
    Speakers speakers;
    speakers.open = [](const Task& task) { return std::vector<Message>{{"user", task.source}}; };
    speakers.encode = [&](const std::vector<Message>& messages) {
      seen_.push_back(messages);
      return std::vector<int32_t>(messages.size(), static_cast<int32_t>(seen_.size()));
    };
    speakers.answer = [&](const std::vector<GenerateRequest>& requests, const std::vector<Candidate>& candidates,
                          int64_t turn) {
      std::vector<Sample> said;
      for (size_t i = 0; i < requests.size(); ++i) {
        EXPECT_EQ(requests[i].samples, 1);
        keys_.push_back(requests[i].rng.key());
        ids_.push_back(candidates[i].id);
        EXPECT_EQ(candidates[i].text, "");
        // Whose it is can be told from the prompt only: from the first answer in it.
        const std::string& first = seen_[static_cast<size_t>(requests[i].prompt[0]) - 1][1].content;
        for (const auto& line : lines) {
          if (line[0] != first) continue;
          const std::string& text = line[static_cast<size_t>(turn - 1)];
          said.push_back({{{2, 3}, {0, 0}, true, text, requests[i].prompt}, verdict_of(text)});
        }
      }
      return said;
    };
    std::vector<Rng> streams = {Rng(7)};
    further_turns(&rollouts, streams, rules, speakers);
    return rollouts;
  }

  static std::string texts(const Rollouts& rollouts) {
    std::string out;
    for (const Sample& sample : rollouts.groups[0].samples) {
      const Rollout& r = sample.rollout;
      out += cat(r.trajectory, ".", r.turn, " ", r.text, "; ");
    }
    return out;
  }

  std::vector<std::vector<Message>> seen_;  // What was encoded.
  std::vector<uint64_t> keys_;
  std::vector<std::string> ids_;
};

TEST_F(Conversation, EachTrajectoryGoesOnByItselfUntilItIsRight) {
  Rollouts rollouts = hold({{"a", "b", "c"}, {"right", "?"}, {"d", "right", "?"}}, 3, "always");
  EXPECT_EQ(texts(rollouts), "0.1 a; 1.1 right; 2.1 d; 0.2 b; 2.2 right; 0.3 c; ");
  const std::vector<Sample>& samples = rollouts.groups[0].samples;
  ASSERT_EQ(samples.size(), 6u);
  EXPECT_TRUE(samples[4].verdict.correct());
  EXPECT_EQ(ids_, (std::vector<std::string>{"t#0.2", "t#2.2", "t#0.3"}));
  EXPECT_EQ(rollouts.too_long, 0);
  EXPECT_EQ(samples[0].rollout.feedback, "MEND The code breaks a rule of the task: about a");
  EXPECT_EQ(samples[1].rollout.feedback, "");
  EXPECT_EQ(samples[5].rollout.feedback, "");
  EXPECT_EQ(samples[5].rollout.prompt.size(), 5u);
}

TEST_F(Conversation, ThePromptIsTheWholeConversation) {
  hold({{"a", "b", "c"}}, 3, "always");
  ASSERT_EQ(seen_.size(), 2u);
  const std::pair<const char*, const char*> expected[] = {{"user", "SOURCE"},
                                                          {"assistant", "a"},
                                                          {"user", "MEND The code breaks a rule of the task: about a"},
                                                          {"assistant", "b"},
                                                          {"user", "MEND The code breaks a rule of the task: about b"}};
  ASSERT_EQ(seen_[1].size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(seen_[1][i].role, expected[i].first);
    EXPECT_EQ(seen_[1][i].content, expected[i].second);
  }
}

TEST_F(Conversation, ACorrectAnswerMayBecomeFaster) {
  std::vector<std::vector<std::string>> lines = {{"right", "x"}, {"fast", "y"}};
  EXPECT_EQ(texts(hold(lines, 2, "always")), "0.1 right; 1.1 fast; ");
  Rollouts timed = hold(lines, 2, "untimed");
  EXPECT_EQ(texts(timed), "0.1 right; 1.1 fast; 1.2 y; ");
  EXPECT_EQ(timed.groups[0].samples[1].rollout.feedback,
            "FASTER The answer is correct. It takes 1.0 us, the reference 2.0 us: 2.00 times as fast.");
  EXPECT_EQ(texts(hold(lines, 2, "never")), "0.1 right; 1.1 fast; 0.2 x; 1.2 y; ");
}

TEST_F(Conversation, AHarnessFaultEndsATrajectory) {
  Rollouts rollouts = hold({{"fault", "?"}, {"a", "fault", "?"}}, 3, "never");
  EXPECT_EQ(texts(rollouts), "0.1 fault; 1.1 a; 1.2 fault; ");
  EXPECT_TRUE(rollouts.groups[0].samples[2].verdict.is_harness_fault());
}

TEST_F(Conversation, APromptThatIsTooLongEndsItAndIsCounted) {
  Rollouts rollouts = hold({{"a", "b", "c"}, {"d", "e", "f"}}, 3, "always", 4);  // Turn 3's prompt would have 5 tokens.
  EXPECT_EQ(texts(rollouts), "0.1 a; 1.1 d; 0.2 b; 1.2 e; ");
  EXPECT_EQ(rollouts.too_long, 2);
  EXPECT_EQ(rollouts.groups[0].samples[2].rollout.feedback, "");  // It was not told.
}

// Draws depend on the task, the trajectory and the turn; not on which others continue.
TEST_F(Conversation, StreamsBelongToTrajectoryAndTurn) {
  hold({{"a", "b", "c"}, {"d", "e", "f"}}, 3, "always");
  ASSERT_EQ(keys_.size(), 4u);
  EXPECT_EQ(std::set<uint64_t>(keys_.begin(), keys_.end()).size(), 4u);
  EXPECT_EQ(keys_[1], Rng(7).at("turn").at(2).at(1).key());
  std::vector<uint64_t> before = keys_;
  keys_.clear();
  hold({{"right", "?"}, {"d", "e", "f"}}, 3, "always");
  EXPECT_EQ(keys_, (std::vector<uint64_t>{before[1], before[3]}));
}

}  // namespace
}  // namespace tritonrl::conversation_test
