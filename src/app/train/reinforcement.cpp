// SPDX-License-Identifier: Apache-2.0
#include "app/train/reinforcement.h"

#include <algorithm>

#include "app/assemble.h"
#include "app/device_memory.h"
#include "app/train/fine_tuning.h"
#include "app/train/step_metrics.h"
#include "app/train/turn_report.h"
#include "base/log.h"
#include "train/credit/returns.h"
#include "train/kl_reward.h"

namespace tritonrl {

Reinforcement::Reinforcement(const Config& config, RunDir& run, Checkpoints& checkpoints, TrainedPolicy& policy,
                             const std::vector<Task>& tasks, const Rng& rng, std::function<Verifier&()> verifier,
                             SharedWork shared)
    : config_(config),
      run_(run),
      checkpoints_(checkpoints),
      policy_(policy),
      rng_(rng),
      verifier_(std::move(verifier)),
      sampler_(config.data.sampler.make(tasks)),
      credit_(make_credit(config.rl)),
      late_(make_late_limits(config)),
      source_(
          rollout_rules(config), run / "rollouts", tasks, *sampler_, rng, verifier_,
          [this](int64_t step) { return late_.of_step(step); }, std::move(shared)) {}

void Reinforcement::step(int64_t step) {
  std::string phase = cat("rl/step_", step);
  if (!run_.phase_done(phase)) return learn(step);
  Json data = run_.phase_data(phase);
  sampler_->restore(data["sampler"]);
  credit_->restore(data.value("credit", Json::object()));
  late_.restore(step, data.value("late", Json::object()));
  source_.restore(step, data.value("ahead", Json()));
}

// A step of the loop in docs/life_of_a_candidate.md. More than one round only with rl.resample_rounds.
void Reinforcement::learn(int64_t step) {
  const std::string phase = cat("rl/step_", step);
  const RewardRules rules = reward_rules(config_);
  policy_.attach(step == 1 ? policy_.rl_start() : cat("rl_", step - 1));
  double start = now_s();
  Experience all;
  for (int64_t wanted = config_.rl.tasks_per_step; wanted > 0 && all.rounds <= config_.rl.resample_rounds;) {
    with_memory_advice(phase + ": sampling", "policy.slots or rl.sampling.max_new_tokens", [&] {
      std::vector<Task> tasks = source_.next_tasks(step, wanted);
      Rollouts answers = source_.roll_out(step, all.rounds, tasks, policy_.get(), policy_.name());
      give_rewards(answers.groups, rules, policy_.get().tokenizer());
      sampler_->observe(results_by_task(answers.groups));
      late_.observe(step, answers.groups);
      wanted -= keep_useful(answers.groups, rules);
      charge_length(answers.groups, rules);
      write_verdicts(run_, answers.groups, phase);
      all.divergence += price_divergence(answers.groups);
      give_returns(answers.groups, rules.gamma);
      all.rollouts.add(std::move(answers));
      ++all.rounds;
    });
  }
  save_samples(samples_file(run_, step), all.rollouts.groups, config_.rl.turns);
  std::vector<TrainExample> examples = credit_->assign(all.rollouts.groups);
  TrainSummary summary = update(step, examples);
  double updated = now_s();
  Json ahead = source_.ahead(step);
  all.rollouts.times.wait_rollout += now_s() - updated;
  Json line = write_step(step, all, static_cast<int64_t>(examples.size()), summary, now_s() - start);
  run_.mark_done(phase, {{"sampler", sampler_->state()},
                         {"credit", credit_->state()},
                         {"late", late_.state(step)},
                         {"kept", examples.size()},
                         {"score",
                          {{"of_step", step - 1 - all.rollouts.staleness},
                           {"reward", line["reward/mean"]},
                           {"correct_rate", line["correct_rate"]}}},
                         {"update", to_json(summary)},
                         {"ahead", ahead}});
  source_.done(step);
  checkpoints_.done(step);
}

// Leaves out groups that teach nothing, where others are to be drawn for them. Returns how many stay.
int64_t Reinforcement::keep_useful(std::span<Group> groups, const RewardRules& rules) const {
  if (config_.rl.resample_rounds == 0) return static_cast<int64_t>(groups.size());
  give_returns(groups, rules.gamma);  // Before the prices of length and divergence: those are no news about a task.
  for (Group& group : groups) {
    if (config_.rl.resample_by == ResampleBy::kReward) {
      group.trained_on = !teaches_nothing(group, config_.rl.advantage);
      continue;
    }
    bool right = false, wrong = false;
    for (const Sample& sample : group.samples) {
      if (sample.reward) (sample.verdict.correct() ? right : wrong) = true;
    }
    group.trained_on = right && wrong;
  }
  return std::count_if(groups.begin(), groups.end(), [](const Group& group) { return group.trained_on; });
}

// rl.loss.kl_in: reward. Returns the mean divergence, in nats.
double Reinforcement::price_divergence(std::span<Group> groups) {
  const PolicyLossConfig& loss = config_.rl.loss;
  if (!has_advantages(config_.rl.algorithm) || loss.kl == 0 || loss.kl_in != KlIn::kReward) return 0;
  return charge_divergence(policy_.get(), groups, policy_.reference(), loss, policy_.sampling_temperature(),
                           config_.rl.train.micro_batch_tokens);
}

// Trains on what earned credit and saves the policy that comes of it: also where a step turns out to teach nothing,
// the next continues from there.
TrainSummary Reinforcement::update(int64_t step, const std::vector<TrainExample>& examples) {
  const std::string phase = cat("rl/step_", step);
  AdamW* kept = config_.rl.train.optimizer.schedule == Schedule::kConstant ? &policy_.optimizer() : nullptr;
  TrainSummary summary;
  if (examples.empty()) {
    log_warn(phase + ": no sample earned credit, the policy stays as it is");
  } else {
    TrainedPolicy::Update how{phase, cat("rl ", step), "rl.train.micro_batch_tokens", kept};
    if (config_.rl.staleness > 0) how.device = verifier_().shared_device(policy_.get().weights().device.str());
    Rng rng = rng_.at(static_cast<uint64_t>(step)).at("update");
    TrainConfig train = config_.rl.train;
    train.optimizer.lr *= config_.rl.decay_at(step);
    summary = policy_.train_on(examples, train, rng, how);
  }
  policy_.save(cat("rl_", step), kept);
  return summary;
}

Json Reinforcement::write_step(int64_t step, const Experience& all, int64_t examples, const TrainSummary& summary,
                               double seconds) {
  Json line = step_metrics({step, all.rollouts, config_.rl.advantage, all.rounds, examples, summary,
                            policy_.grad_norm(), device_peak_bytes(policy_.get().weights().device), seconds});
  line.update(turn_metrics(all.rollouts, config_.rl.turns));
  if (config_.rl.loss.kl > 0 && config_.rl.loss.kl_in == KlIn::kReward) {
    line["reward/kl"] = all.divergence / static_cast<double>(all.rounds);
  }
  for (const auto& [metric, value] : sampler_->metrics()) line[metric] = value;
  for (const auto& [stage, limit] : late_.of_step(step)) line[cat("verify/late_after_s/", to_string(stage))] = limit;
  run_.steps().write(line);
  log_info(cat("rl/step_", step, ": reward ", fixed(line["reward/mean"].get<double>(), 3), ", ",
               line.value("verify/outcome/pass", 0), " of ", line["rollouts"].dump(), " correct, ", examples, " kept"));
  return line;
}

}  // namespace tritonrl
