// SPDX-License-Identifier: Apache-2.0
#include "rollout/roll_out.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"

namespace tritonrl {

void Rollouts::add(Rollouts more) {
  std::move(more.groups.begin(), more.groups.end(), std::back_inserter(groups));
  times.add(more.times);
  tokens += more.tokens;
  too_long += more.too_long;
  staleness = more.staleness;
}

Rollouts roll_out_and_verify(const PolicySnapshot& policy, Verifier& verifier, std::span<const Task> tasks,
                             int64_t samples, const SamplingConfig& sampling, const Rng& rng, const Collecting& how) {
  std::vector<Candidate> candidates;
  for (const Task& task : tasks) {
    for (int64_t s = 0; s < samples; ++s) {
      Candidate candidate;
      candidate.id = cat(task.id, "#", s);
      candidate.task = task;
      candidates.push_back(std::move(candidate));
    }
  }
  auto place = [&](size_t g, int64_t s) { return g * static_cast<size_t>(samples) + static_cast<size_t>(s); };
  KnownAnswer known;
  if (how.journal) known = [&](size_t g, int64_t s) { return how.journal->answer(1, place(g, s)); };
  std::vector<std::vector<Rollout>> rollouts;
  auto draw = [&](const GenerateProgress& progress, const auto& on_answer) {
    auto answered = [&](size_t g, int64_t s, const Rollout& one) { on_answer(place(g, s), one); };
    rollouts = policy.roll_out(tasks, samples, sampling, rng, progress, answered, known);
  };
  Collected all = sample_and_verify(verifier, std::move(candidates), draw, how, 1,
                                    verifier.shared_device(policy.weights().device.str()));
  Rollouts out;
  for (size_t g = 0; g < tasks.size(); ++g) {
    Group& group = out.groups.emplace_back(Group{tasks[g], {}});
    for (int64_t s = 0; s < samples; ++s) {
      group.samples.push_back({std::move(rollouts[g][static_cast<size_t>(s)]), std::move(all.verdicts[place(g, s)])});
    }
  }
  out.times = all.times;
  out.tokens = all.tokens;
  return out;
}

}  // namespace tritonrl
