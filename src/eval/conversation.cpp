// SPDX-License-Identifier: Apache-2.0
#include "eval/conversation.h"

#include "base/check.h"
#include "base/log.h"
#include "base/text.h"
#include "verify/feedback.h"

namespace tritonrl {
namespace {

struct Trajectory {
  size_t group = 0, last = 0;  // `last` = its latest answer among the group's rollouts.
  std::vector<Message> messages;
};

}  // namespace

bool goes_on(const Verdict& verdict, StopWhenCorrect stop) {
  if (verdict.is_harness_fault()) return false;
  if (!verdict.correct()) return true;
  return stop == StopWhenCorrect::kNever || (stop == StopWhenCorrect::kUntimed && verdict.timing.has_value());
}

void go_on(Verified* verified, std::span<const Rng> streams, const TurnRules& rules, const Speakers& speakers) {
  CHECK(streams.size() == verified->groups.size()) << streams.size() << " streams";
  std::vector<Trajectory> talking;
  for (size_t g = 0; g < verified->groups.size(); ++g) {
    const Group& group = verified->groups[g];
    for (size_t r = 0; r < group.rollouts.size(); ++r) talking.push_back({g, r, speakers.open(group.task)});
  }
  for (int64_t turn = 2; turn <= rules.turns; ++turn) {
    std::vector<Trajectory> still;
    std::vector<GenerateRequest> requests;
    for (Trajectory& one : talking) {
      Rollout& last = verified->groups[one.group].rollouts[one.last];
      const Verdict& verdict = verified->verdicts[one.group][one.last];
      if (!goes_on(verdict, rules.stop_when_correct)) continue;
      one.messages.push_back({"assistant", last.text});
      one.messages.push_back(
          rules.prompt.render(feedback_text(public_part(verdict), rules.feedback_chars), verdict.correct()));
      std::vector<int32_t> prompt = speakers.encode(one.messages);
      if (static_cast<int64_t>(prompt.size()) > rules.max_prompt_tokens) {
        ++verified->too_long;
        continue;
      }
      last.feedback = one.messages.back().content;
      Rng stream = streams[one.group].at("turn").at(static_cast<uint64_t>(turn));
      requests.push_back({std::move(prompt), 1, stream.at(static_cast<uint64_t>(last.trajectory))});
      still.push_back(std::move(one));
    }
    talking = std::move(still);
    if (talking.empty()) return;
    std::vector<Candidate> candidates;
    for (const Trajectory& one : talking) {
      const Group& group = verified->groups[one.group];
      int64_t trajectory = group.rollouts[one.last].trajectory;
      candidates.push_back({cat(group.task.id, "#", trajectory, ".", turn), group.task, "", false});
    }
    auto [answers, verdicts] = speakers.answer(requests, std::move(candidates), turn);
    CHECK(answers.size() == talking.size() && verdicts.size() == talking.size())
        << answers.size() << " answers and " << verdicts.size() << " verdicts of " << talking.size();
    for (size_t i = 0; i < talking.size(); ++i) {
      answers[i].trajectory = verified->groups[talking[i].group].rollouts[talking[i].last].trajectory;
      answers[i].turn = turn;
      answers[i].prompt = std::move(requests[i].prompt);
    }
    for (size_t i = 0; i < talking.size(); ++i) {
      size_t g = talking[i].group;
      talking[i].last = verified->groups[g].rollouts.size();
      verified->groups[g].rollouts.push_back(std::move(answers[i]));
      verified->verdicts[g].push_back(std::move(verdicts[i]));
    }
  }
}

Verified hold_conversations(const PolicySnapshot& policy, Verifier& verifier, std::span<const Task> tasks,
                            int64_t samples, const SamplingConfig& sampling, const Rng& rng, const TurnRules& rules,
                            const Collecting& how) {
  if (rules.turns == 1) return roll_out_and_verify(policy, verifier, tasks, samples, sampling, rng, how);
  Collecting each = how;
  each.on_sampled = {};  // There is more to come.
  Verified verified = roll_out_and_verify(policy, verifier, tasks, samples, sampling, rng, each);
  Speakers speakers;
  speakers.open = [&](const Task& task) { return policy.text().messages(task); };
  speakers.encode = [&](const std::vector<Message>& messages) { return policy.text().encode(messages); };
  speakers.answer = [&](std::vector<GenerateRequest> requests, std::vector<Candidate> candidates, int64_t turn) {
    for (size_t i = 0; how.journal && i < requests.size(); ++i) {
      if (const Generated* known = how.journal->answer(turn, i)) requests[i].known.emplace(0, *known);
    }
    Turn said;
    auto draw = [&](const GenerateProgress& progress, const auto& on_answer) {
      auto answered = [&](size_t i, int64_t, const Rollout& one) { on_answer(i, one); };
      auto sampled = policy.answer(requests, sampling, progress, answered);
      for (auto& one : sampled) said.answers.push_back(std::move(one[0]));
    };
    Collected all = sample_and_verify(verifier, std::move(candidates), draw, each, turn,
                                      verifier.shared_device(policy.weights().device.str()));
    said.verdicts = std::move(all.verdicts);
    verified.times.add(all.times);
    verified.tokens += all.tokens;
    return said;
  };
  go_on(&verified, PolicySnapshot::streams(tasks, rng), rules, speakers);
  if (how.on_sampled) how.on_sampled();
  if (verified.too_long > 0) {
    log_warn(cat(how.what, ": ", verified.too_long,
                 " conversations ended early: the next prompt would have had more than ", rules.max_prompt_tokens,
                 " tokens (policy.max_prompt_tokens)"));
  }
  return verified;
}

}  // namespace tritonrl
