// SPDX-License-Identifier: Apache-2.0
#include "rollout/conversation.h"

#include "base/check.h"
#include "base/log.h"
#include "base/text.h"
#include "verify/feedback.h"

namespace tritonrl {
namespace {

struct Trajectory {
  size_t group = 0, last = 0;  // `last` = its latest answer among the group's samples.
  std::vector<Message> messages;
};

}  // namespace

bool goes_on(const Verdict& verdict, StopWhenCorrect stop) {
  if (verdict.is_harness_fault()) return false;
  if (!verdict.correct()) return true;
  return stop == StopWhenCorrect::kNever || (stop == StopWhenCorrect::kUntimed && verdict.timing.has_value());
}

void further_turns(Rollouts* rollouts, std::span<const Rng> streams, const TurnRules& rules, const Speakers& speakers) {
  CHECK(streams.size() == rollouts->groups.size()) << streams.size() << " streams";
  std::vector<Trajectory> talking;
  for (size_t g = 0; g < rollouts->groups.size(); ++g) {
    const Group& group = rollouts->groups[g];
    for (size_t s = 0; s < group.samples.size(); ++s) talking.push_back({g, s, speakers.open(group.task)});
  }
  for (int64_t turn = 2; turn <= rules.turns; ++turn) {
    std::vector<Trajectory> still;
    std::vector<GenerateRequest> requests;
    for (Trajectory& one : talking) {
      Sample& last = rollouts->groups[one.group].samples[one.last];
      if (!goes_on(last.verdict, rules.stop_when_correct)) continue;
      one.messages.push_back({"assistant", last.rollout.text});
      one.messages.push_back(
          rules.prompt.render(feedback_text(public_part(last.verdict), rules.feedback_chars), last.verdict.correct()));
      std::vector<int32_t> prompt = speakers.encode(one.messages);
      if (static_cast<int64_t>(prompt.size()) > rules.max_prompt_tokens) {
        ++rollouts->too_long;
        continue;
      }
      last.rollout.feedback = one.messages.back().content;
      Rng stream = streams[one.group].at("turn").at(static_cast<uint64_t>(turn));
      requests.push_back({std::move(prompt), 1, stream.at(static_cast<uint64_t>(last.rollout.trajectory))});
      still.push_back(std::move(one));
    }
    talking = std::move(still);
    if (talking.empty()) return;
    std::vector<Candidate> candidates;
    for (const Trajectory& one : talking) {
      const Group& group = rollouts->groups[one.group];
      int64_t trajectory = group.samples[one.last].rollout.trajectory;
      candidates.push_back({cat(group.task.id, "#", trajectory, ".", turn), group.task, "", false});
    }
    std::vector<Sample> said = speakers.answer(requests, std::move(candidates), turn);
    CHECK(said.size() == talking.size()) << said.size() << " answers of " << talking.size();
    for (size_t i = 0; i < talking.size(); ++i) {
      std::vector<Sample>& samples = rollouts->groups[talking[i].group].samples;
      said[i].rollout.trajectory = samples[talking[i].last].rollout.trajectory;
      said[i].rollout.turn = turn;
      talking[i].last = samples.size();
      samples.push_back(std::move(said[i]));
    }
  }
}

Rollouts hold_conversations(const PolicySnapshot& policy, Verifier& verifier, std::span<const Task> tasks,
                            int64_t samples, const SamplingConfig& sampling, const Rng& rng, const TurnRules& rules,
                            const Collecting& how) {
  if (rules.turns == 1) return roll_out_and_verify(policy, verifier, tasks, samples, sampling, rng, how);
  Collecting each = how;
  each.on_sampled = {};  // There is more to come.
  Rollouts rollouts = roll_out_and_verify(policy, verifier, tasks, samples, sampling, rng, each);
  Speakers speakers;
  speakers.open = [&](const Task& task) { return policy.text().messages(task); };
  speakers.encode = [&](const std::vector<Message>& messages) { return policy.text().encode(messages); };
  speakers.answer = [&](std::vector<GenerateRequest> requests, std::vector<Candidate> candidates, int64_t turn) {
    for (size_t i = 0; how.journal && i < requests.size(); ++i) {
      if (const Generated* known = how.journal->answer(turn, i)) requests[i].known.emplace(0, *known);
    }
    std::vector<std::vector<Rollout>> answers;
    auto draw = [&](const GenerateProgress& progress, const auto& on_answer) {
      auto answered = [&](size_t i, int64_t, const Rollout& one) { on_answer(i, one); };
      answers = policy.answer(requests, sampling, progress, answered);
    };
    Collected all = sample_and_verify(verifier, std::move(candidates), draw, each, turn,
                                      verifier.shared_device(policy.weights().device.str()));
    std::vector<Sample> said;
    for (size_t i = 0; i < answers.size(); ++i) {
      said.push_back({std::move(answers[i][0]), std::move(all.verdicts[i])});
    }
    rollouts.times.add(all.times);
    rollouts.tokens += all.tokens;
    return said;
  };
  further_turns(&rollouts, PolicySnapshot::streams(tasks, rng), rules, speakers);
  if (how.on_sampled) how.on_sampled();
  if (rollouts.too_long > 0) {
    log_warn(cat(how.what, ": ", rollouts.too_long,
                 " conversations ended early: the next prompt would have had more than ", rules.max_prompt_tokens,
                 " tokens (policy.max_prompt_tokens)"));
  }
  return rollouts;
}

}  // namespace tritonrl
