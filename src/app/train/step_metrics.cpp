// SPDX-License-Identifier: Apache-2.0
#include "app/train/step_metrics.h"

#include <map>
#include <set>

#include "base/process/memory.h"
#include "base/stats.h"

namespace tritonrl {

namespace {

double share(int64_t k, int64_t n) { return n ? static_cast<double>(k) / static_cast<double>(n) : 0.0; }
double rate(double amount, double seconds) { return seconds > 0 ? amount / seconds : 0.0; }

void add_rewards(const StepFacts& facts, Json* line) {
  std::vector<double> rewards, spreads, pass;
  int64_t right = 0, equal = 0;
  for (const Group& group : facts.rollouts.groups) {
    equal += teaches_nothing(group, facts.advantage);
    std::vector<double> of_group;
    int64_t right_here = 0;
    for (const Sample& sample : group.samples) {
      if (!sample.reward) continue;
      of_group.push_back(sample.reward->value);
      right_here += sample.verdict.correct();
    }
    right += right_here;
    rewards.insert(rewards.end(), of_group.begin(), of_group.end());
    if (of_group.size() > 1) spreads.push_back(stddev(of_group));
    if (!of_group.empty()) pass.push_back(pass_at_k(static_cast<int64_t>(of_group.size()), right_here, 1));
  }
  line->update({{"reward/mean", mean(rewards)},
                {"reward/std", stddev(rewards)},
                {"reward/std_in_group", mean(spreads)},
                {"reward/zero_variance_share", share(equal, static_cast<int64_t>(facts.rollouts.groups.size()))},
                {"correct_rate", share(right, static_cast<int64_t>(rewards.size()))},
                {"pass_at_1", mean(pass)},
                {"rollouts", static_cast<int64_t>(rewards.size())}});
}

void add_lengths(const StepFacts& facts, Json* line) {
  std::vector<double> lengths;
  int64_t cut_off = 0;
  for (const Group& group : facts.rollouts.groups) {
    for (const Sample& sample : group.samples) {
      lengths.push_back(static_cast<double>(sample.rollout.tokens.size()));
      cut_off += !sample.rollout.finished;
    }
  }
  auto all = static_cast<int64_t>(lengths.size());
  line->update({{"length/mean", mean(lengths)}, {"length/cut_off_share", share(cut_off, all)}});
}

void add_verdicts(const StepFacts& facts, Json* line) {
  std::map<std::string, int64_t> outcomes, detectors;
  std::map<std::string, std::vector<double>> stages, own;
  std::set<std::pair<std::string, std::string>> different;
  int64_t all = 0, recorded = 0, known = 0, rejected = 0, late = 0;
  for (const Group& group : facts.rollouts.groups) {
    for (const Sample& sample : group.samples) {
      const Verdict& verdict = sample.verdict;
      ++all;
      ++outcomes[to_string(verdict.outcome)];
      late += verdict.finding().rule() == Rule::kLate;
      if (std::string detector = detector_of(verdict.finding().rule()); !detector.empty()) {
        ++rejected;
        ++detectors[cat(to_string(verdict.outcome), "/", detector)];
      }
      // The same answer to the same task is verified once: its copies took no time.
      if (!different.emplace(verdict.task_id, sample.rollout.text).second) continue;
      for (const StageResult& stage : verdict.stages) {
        stages[to_string(stage.stage)].push_back(stage.seconds);
        if (stage.own_s) own[to_string(stage.stage)].push_back(*stage.own_s);
      }
      if (!verdict.triton_compile_s) continue;
      ++recorded;
      known += *verdict.triton_compile_s == 0;
    }
  }
  for (const auto& [outcome, count] : outcomes) {
    (*line)["verify/outcome/" + outcome] = count;
    (*line)["verify/outcome_share/" + outcome] = share(count, all);
  }
  for (const auto& [detector, count] : detectors) (*line)["verify/rejected/" + detector] = count;
  for (const auto& [stage, seconds] : stages) {
    (*line)["time/stage/" + stage + "/median"] = percentile(seconds, 50);
    (*line)["time/stage/" + stage + "/p95"] = percentile(seconds, 95);
  }
  for (const auto& [stage, seconds] : own) {
    (*line)["time/own/" + stage + "/p95"] = percentile(seconds, 95);
    (*line)["time/own/" + stage + "/max"] = percentile(seconds, 100);
  }
  auto faults = outcomes.find(to_string(Outcome::kHarnessFault));
  line->update({{"harness_faults", faults == outcomes.end() ? 0 : faults->second},
                {"verify/rejected_share", share(rejected, all)},
                {"verify/late", late},
                {"verify/same_answers", all - static_cast<int64_t>(different.size())},
                {"verify/kernels_known_share", share(known, recorded)},
                {"verify/candidates_per_s",
                 rate(static_cast<double>(facts.rollouts.times.judged), facts.rollouts.times.verify)}});
}

}  // namespace

Json step_metrics(const StepFacts& facts) {
  const Rollouts& rollouts = facts.rollouts;
  const TrainSummary& update = facts.update;
  Json line = {{"phase", "rl"},
               {"unit", cat("rl/step_", facts.step)},
               {"step", facts.step},
               {"rollout_rounds", facts.rounds},
               {"kept", facts.kept},
               {"loss", update.last_loss},
               {"grad_norm", update.steps > 0 ? Json(facts.grad_norm) : Json()},
               {"tokens", rollouts.tokens},
               {"rollout/tokens_per_s", rate(static_cast<double>(rollouts.times.drawn), rollouts.times.rollout)},
               {"update/tokens_per_s", rate(static_cast<double>(update.tokens), update.seconds)},
               {"memory/resident_bytes", resident_bytes()},
               {"time/phase/rollout", rollouts.times.rollout},
               {"time/phase/verify", rollouts.times.verify},
               {"time/phase/verify_alone", rollouts.times.verify_alone},
               {"time/phase/update", update.seconds},
               {"time/rollout_gave_way", rollouts.times.gave_way},
               {"time/wait_rollout", rollouts.times.wait_rollout},
               {"time/wait_verify", rollouts.times.wait_verify},
               {"time/idle", rollouts.times.idle},
               {"staleness", rollouts.staleness},
               {"seconds", facts.seconds}};
  if (facts.device_peak_bytes > 0) line["memory/device_peak_bytes"] = facts.device_peak_bytes;
  add_rewards(facts, &line);
  add_lengths(facts, &line);
  add_verdicts(facts, &line);
  add_policy_metrics(update.policy, &line);
  return line;
}

void add_policy_metrics(const PolicyLossMetrics& m, Json* line) {
  if (m.tokens == 0) return;
  auto n = static_cast<double>(m.tokens);
  Json metrics = {{"policy/ratio_mean", m.ratio / n},
                  {"policy/ratio_max", m.ratio_max},
                  {"policy/clip_low_share", static_cast<double>(m.clipped_low) / n},
                  {"policy/clip_high_share", static_cast<double>(m.clipped_high) / n},
                  {"policy/kl_old_k1", m.old_k1 / n},
                  {"policy/kl_old_k3", m.old_k3 / n},
                  {"policy/kl_reference", m.reference_kl / n},
                  {"policy/entropy", m.entropy / n},
                  {"policy/rollout_difference_mean", m.sampled_difference / n},
                  {"policy/rollout_difference_max", m.sampled_difference_max},
                  {"policy/corrected_share", static_cast<double>(m.corrected) / n},
                  {"policy/vetoed", m.vetoed}};
  line->update(metrics);
}

}  // namespace tritonrl
