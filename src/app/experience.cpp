// SPDX-License-Identifier: Apache-2.0
#include "app/experience.h"

#include <algorithm>
#include <iterator>

#include "app/assemble.h"
#include "app/turn_report.h"
#include "base/log.h"
#include "train/code_tokens.h"
#include "train/credit/returns.h"
#include "train/kl_reward.h"

namespace tritonrl {

namespace fs = std::filesystem;

void write_verdict(RunDir& run, const Verdict& verdict, const std::string& phase, std::optional<double> reward) {
  Json line = to_json(verdict);
  line["phase"] = phase;
  line["reward"] = reward ? Json(*reward) : Json();
  run.verdicts().write(line);
}

namespace {

std::string six_digits(int64_t step) { return std::string(6 - std::min<size_t>(6, cat(step).size()), '0') + cat(step); }

}  // namespace

fs::path rollouts_file(const RunDir& run, int64_t step) {
  return run.path() / cat("rollouts/step_", six_digits(step), ".jsonl");
}

void save_rollouts(const fs::path& path, const Experience& all, int64_t turns) {
  std::string lines;
  for (size_t g = 0; g < all.scores.size(); ++g) {
    for (size_t r = 0; r < all.scores[g].size(); ++r) {
      const Rollout& rollout = all.verified.groups[g].rollouts[r];
      Json line = {{"task_id", all.verified.groups[g].task.id},
                   {"sample_index", r},
                   {"text", rollout.text},
                   {"tokens", rollout.tokens},
                   {"log_probs", rollout.log_probs},
                   {"finished", rollout.finished},
                   {"reward", all.scores[g][r].reward ? Json(*all.scores[g][r].reward) : Json()},
                   {"outcome", to_string(all.verified.verdicts[g][r].outcome)}};
      line.update(turn_fields(rollout, all.credited[g][r], turns));
      lines += json_line(line) + "\n";
    }
  }
  write_file(path, lines);
}

ExperienceSource::ExperienceSource(const Config& config, RunDir& run, TrainedPolicy& policy,
                                   std::function<Verifier&()> verifier, const std::vector<Task>& tasks,
                                   TaskSampler& sampler, const Rng& rng)
    : config_(config),
      run_(run),
      policy_(policy),
      verifier_(std::move(verifier)),
      sampler_(sampler),
      rng_(rng),
      turns_(rl_turns(config)) {
  for (const Task& task : tasks) tasks_[task.id] = &task;
}

ExperienceSource::~ExperienceSource() = default;

std::string ExperienceSource::phase_of(int64_t step) const { return cat("rl/step_", step); }

fs::path ExperienceSource::pending(int64_t step, int64_t round) const {
  return run_.path() / cat("rollouts/pending_step_", six_digits(step), round > 0 ? cat("_", round) : "", ".jsonl");
}

RolloutWork ExperienceSource::work(int64_t step, const Plan& plan, int64_t round) {
  RolloutWork work;
  work.what = phase_of(step);
  work.tasks = plan.tasks;
  work.samples = config_.rl.samples;
  work.sampling = config_.rl.sampling;
  work.rng = rng_.at(static_cast<uint64_t>(step)).at("rollouts");
  if (round > 0) work.rng = work.rng.at(static_cast<uint64_t>(round));
  work.turns = turns_;
  work.stream = should_stream(config_.rl.stream, policy_.get());
  std::vector<std::string> ids;
  for (const Task& task : plan.tasks) ids.push_back(task.id);
  work.journal = std::make_shared<RolloutJournal>(
      pending(step, round), cat(work.what, " round ", round, " by ", plan.policy, " on ", join(ids, " ")));
  if (int64_t found = work.journal->answers_found(); found > 0) {
    log_info(cat(work.what, ": goes on behind ", found, " answers and ", work.journal->verdicts_found(), " verdicts"));
  }
  return work;
}

ExperienceSource::Plan ExperienceSource::plan(int64_t step, int64_t tasks) {
  if (auto known = plans_.find(step); known != plans_.end()) return known->second;
  Plan plan;
  for (const Task* task : sampler_.next(tasks)) plan.tasks.push_back(*task);
  plan.policy = policy_.name();
  return plan;
}

void ExperienceSource::begin(int64_t step, Plan plan) {
  RolloutWork todo = work(step, plan, 0);
  auto wanted = static_cast<int64_t>(plan.tasks.size()) * config_.rl.samples;
  if (plan.policy != policy_.name() && todo.journal->answers_found() < wanted) {
    log_warn(cat(todo.what, ": ", pending(step).string(), " is not whole; what is missing is drawn by ", policy_.name(),
                 " instead of ", plan.policy));
  }
  batches_[step] = std::make_unique<RolloutBatch>(policy_.get().snapshot(), verifier_(), std::move(todo));
  plans_[step] = std::move(plan);
}

// The rollouts of `step`, which were begun with the step before, and begins those of the next.
Verified ExperienceSource::collect_ahead(int64_t step, Experience* all) {
  if (!batches_.count(step)) {  // The first one, or the run goes on.
    Plan first = plan(step, config_.rl.tasks_per_step);
    if (plans_.count(step) == 0) first.version = step - 1;
    begin(step, std::move(first));
  }
  double start = now_s();
  batches_[step]->wait_sampled();
  double sampled = now_s();
  if (step < config_.rl.steps) {
    Plan next = plan(step + 1, config_.rl.tasks_per_step);
    next.version = step - 1;
    begin(step + 1, std::move(next));
  }
  double waiting = now_s();
  Verified verified = batches_[step]->take();
  double end = now_s();
  all->staleness = step - 1 - plans_[step].version;
  all->wait_rollout = sampled - start;
  all->wait_verify = end - waiting;
  all->idle = all->wait_verify;
  if (step < config_.rl.steps) {
    double busy_until = batches_[step + 1]->busy_until();
    all->idle = std::clamp(end - busy_until, 0.0, all->wait_verify);
  }
  return verified;
}

Judged ExperienceSource::judge(const Verdict& verdict, const Rollout& rollout) {
  Judged judged{reward(verdict, config_.reward), verdict.correct()};
  judged.turn = rollout.turn;
  if (!judged.reward) return judged;
  judged.noise = reward_noise(verdict, config_.reward);
  if (config_.reward.shape == RewardShape::kHierarchical && has_advantages(config_.rl.algorithm)) {
    RewardParts parts = *reward_parts(verdict, config_.reward);
    judged.reward = parts.code;
    judged.plan = parts.plan;
    RewardConfig speed = config_.reward;
    speed.shape = RewardShape::kSpeed;
    judged.plan_noise = reward_noise(verdict, speed);
    judged.noise = 0;
    judged.code = code_tokens(policy_.get().tokenizer(), rollout);
  }
  return judged;
}

bool ExperienceSource::useful(const std::vector<Judged>& group, const std::vector<Judged>& credited) const {
  if (config_.rl.resample_rounds == 0) return true;
  if (config_.rl.resample_by == ResampleBy::kReward) return !teaches_nothing(credited, config_.rl.advantage);
  bool right = false, wrong = false;
  for (const Judged& one : group) {
    if (one.reward) (one.correct ? right : wrong) = true;
  }
  return right && wrong;
}

// Judges them and lets the sampler know. Returns how many groups are to be trained on.
int64_t ExperienceSource::add(Verified verified, const std::string& phase, Experience* all) {
  const bool advantages = has_advantages(config_.rl.algorithm),
             parts = config_.reward.shape == RewardShape::kHierarchical && advantages;
  std::vector<TaskResult> results;
  Scores scores;
  for (size_t g = 0; g < verified.groups.size(); ++g) {
    const Group& group = verified.groups[g];
    TaskResult result{group.task.id, group.task.level, 0, 0};
    scores.emplace_back();
    for (size_t r = 0; r < verified.verdicts[g].size(); ++r) {
      const Verdict& verdict = verified.verdicts[g][r];
      scores.back().push_back(judge(verdict, group.rollouts[r]));
      const Judged& judged = scores.back().back();
      ++all->outcomes[to_string(verdict.outcome)];
      result.samples += judged.turn == 1 && judged.reward;  // What a task asks of the policy is its first answer.
      result.correct += judged.turn == 1 && judged.reward && judged.correct;
    }
    results.push_back(result);
  }
  sampler_.observe(results);

  auto returns = [&](const Scores& of) {
    Scores out;
    for (size_t g = 0; g < of.size(); ++g) {
      out.push_back(advantages ? with_returns(verified.groups[g], of[g], config_.rl.gamma) : of[g]);
    }
    return out;
  };
  int64_t taught = 0;
  Scores plain = returns(scores);  // Before the prices of length and divergence: those are no news about a task.
  for (size_t g = 0; g < scores.size(); ++g) {
    all->trained_on.push_back(useful(scores[g], plain[g]));
    taught += all->trained_on.back();
    for (size_t r = 0; r < scores[g].size(); ++r) {
      Judged& judged = scores[g][r];
      if (judged.reward && config_.rl.overlong == Overlong::kPenalty) {
        const Rollout& rollout = verified.groups[g].rollouts[r];
        double penalty = config_.rl.overlong_weight *
                         overlong_penalty(static_cast<int64_t>(rollout.tokens.size()), rollout.finished,
                                          config_.rl.sampling.max_new_tokens, config_.rl.overlong_tokens);
        *judged.reward += penalty;
        if (parts) judged.plan += penalty;
      }
      write_verdict(run_, verified.verdicts[g][r], phase, judged.reward);
    }
  }
  Scores priced = scores;
  if (advantages && config_.rl.loss.kl > 0 && config_.rl.loss.kl_in == KlIn::kReward) {
    all->divergence +=
        subtract_divergence(policy_.get(), verified.groups, policy_.reference(), config_.rl.loss,
                            policy_.sampling_temperature(), config_.rl.train.micro_batch_tokens, &priced);
  }
  auto take = [](auto& from, auto& to) { std::move(from.begin(), from.end(), std::back_inserter(to)); };
  Scores credited = returns(priced);
  take(scores, all->scores);
  take(credited, all->credited);
  all->verified.times.add(verified.times);
  all->verified.tokens += verified.tokens;
  all->verified.too_long += verified.too_long;
  take(verified.groups, all->verified.groups);
  take(verified.verdicts, all->verified.verdicts);
  ++all->rounds;
  return taught;
}

Experience ExperienceSource::gather(int64_t step) {
  Experience all;
  const std::string phase = phase_of(step);
  if (config_.rl.staleness > 0) {
    Verified verified = collect_ahead(step, &all);
    add(std::move(verified), phase, &all);
    return all;
  }
  int64_t wanted = config_.rl.tasks_per_step;
  while (wanted > 0 && all.rounds <= config_.rl.resample_rounds) {
    RolloutWork todo = work(step, plan(step, wanted), all.rounds);
    Collecting how{phase, todo.stream, todo.journal.get()};
    Verified verified = hold_conversations(policy_.get().snapshot(), verifier_(), todo.tasks, todo.samples,
                                           todo.sampling, todo.rng, todo.turns, how);
    all.wait_rollout += verified.times.rollout;
    all.wait_verify += verified.times.verify_alone;
    all.idle += verified.times.verify_alone;
    wanted -= add(std::move(verified), phase, &all);
    if (config_.rl.resample_rounds == 0) break;
  }
  all.divergence /= static_cast<double>(std::max<int64_t>(all.rounds, 1));
  return all;
}

Json ExperienceSource::ahead(int64_t step) {
  auto next = batches_.find(step + 1);
  if (next == batches_.end()) return Json();
  next->second->wait_sampled();
  next->second->journal()->sync();
  const Plan& plan = plans_.at(step + 1);
  std::vector<std::string> ids;
  for (const Task& task : plan.tasks) ids.push_back(task.id);
  return {{"step", step + 1}, {"tasks", ids}, {"policy", plan.policy}, {"version", plan.version}};
}

void ExperienceSource::settle() {
  for (auto& [step, batch] : batches_) batch->wait_done();
}

void ExperienceSource::done(int64_t step) {
  batches_.erase(step);
  plans_.erase(step);
  std::error_code gone;
  for (int64_t round = 0; round <= config_.rl.resample_rounds; ++round) fs::remove(pending(step, round), gone);
}

void ExperienceSource::restore(int64_t step, const Json& recorded) {
  done(step);
  Json next = recorded.value("ahead", Json());
  if (next.is_null()) return;
  Plan plan;
  for (const Json& id : next.at("tasks")) plan.tasks.push_back(*tasks_.at(id.get<std::string>()));
  plan.policy = next.at("policy").get<std::string>();
  plan.version = next.at("version").get<int64_t>();
  plans_[next.at("step").get<int64_t>()] = std::move(plan);
}

}  // namespace tritonrl
