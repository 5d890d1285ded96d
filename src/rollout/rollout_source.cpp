// SPDX-License-Identifier: Apache-2.0
#include "rollout/rollout_source.h"

#include <algorithm>

#include "base/log.h"
#include "base/text.h"

namespace tritonrl {

namespace fs = std::filesystem;

namespace {

std::vector<std::string> ids_of(const std::vector<Task>& tasks) {
  std::vector<std::string> ids;
  for (const Task& task : tasks) ids.push_back(task.id);
  return ids;
}

}  // namespace

RolloutSource::RolloutSource(RolloutRules rules, fs::path folder, const std::vector<Task>& tasks, TaskSampler& sampler,
                             const Rng& rng, std::function<Verifier&()> verifier, LimitsOf limits, SharedWork shared)
    : rules_(std::move(rules)),
      folder_(std::move(folder)),
      sampler_(sampler),
      rng_(rng),
      verifier_(std::move(verifier)),
      limits_(std::move(limits)),
      shared_(std::move(shared)) {
  for (const Task& task : tasks) tasks_[task.id] = &task;
}

RolloutSource::~RolloutSource() = default;

fs::path RolloutSource::pending(int64_t step, int64_t round) const {
  return folder_ / cat("pending_", step_name(step), round > 0 ? cat("_", round) : "", ".jsonl");
}

std::vector<Task> RolloutSource::next_tasks(int64_t step, int64_t n) {
  if (auto known = assigned_.find(step); known != assigned_.end()) return known->second.tasks;
  std::vector<Task> tasks;
  for (const Task* task : sampler_.next(n)) tasks.push_back(*task);
  return tasks;
}

RolloutWork RolloutSource::work(int64_t step, int64_t round, const Assignment& what, const Policy& policy) {
  RolloutWork work;
  work.what = cat("rl/step_", step);
  work.tasks = shared_.mine(what.tasks);
  work.samples = rules_.samples;
  work.sampling = rules_.sampling;
  work.rng = rng_.at(static_cast<uint64_t>(step)).at("rollouts");
  if (round > 0) work.rng = work.rng.at(static_cast<uint64_t>(round));
  work.turns = rules_.turns;
  work.stream = should_stream(rules_.stream, policy);
  work.limits = limits_(step);
  work.journal = std::make_shared<RolloutJournal>(
      pending(step, round),
      cat(work.what, " round ", round, " by ", what.policy, " on ", join(ids_of(work.tasks), " ")));
  if (int64_t found = work.journal->answers_found(); found > 0) {
    log_info(cat(work.what, ": continues after ", found, " answers and ", work.journal->verdicts_found(), " verdicts"));
  }
  return work;
}

Rollouts RolloutSource::roll_out(int64_t step, int64_t round, const std::vector<Task>& tasks, Policy& policy,
                                 const std::string& name) {
  if (rules_.staleness > 0) {
    assigned_.try_emplace(step, Assignment{tasks, name, step - 1});
    return collect_ahead(step, policy, name);
  }
  RolloutWork todo = work(step, round, {tasks, name, step - 1}, policy);
  Rollouts rollouts =
      hold_conversations(policy.snapshot(), verifier_(), todo.tasks, todo.samples, todo.sampling, todo.rng, todo.turns,
                         {todo.what, todo.stream, todo.journal.get(), todo.limits});
  PhaseTimes& times = rollouts.times;
  times.wait_rollout = times.rollout;
  times.wait_verify = times.idle = times.verify_alone;
  return shared_.put_together(tasks, std::move(rollouts));
}

void RolloutSource::begin(int64_t step, Policy& policy, const std::string& name) {
  const Assignment& what = assigned_.at(step);
  RolloutWork todo = work(step, 0, what, policy);
  auto wanted = static_cast<int64_t>(todo.tasks.size()) * rules_.samples;
  if (what.policy != name && todo.journal->answers_found() < wanted) {
    log_warn(cat(todo.what, ": ", pending(step).string(), " is not whole; what is missing is drawn by ", name,
                 " instead of ", what.policy));
  }
  batches_[step] = std::make_unique<RolloutBatch>(policy.snapshot(), verifier_(), std::move(todo));
}

// The rollouts of `step`, which were begun with the step before, and begins those of the next.
Rollouts RolloutSource::collect_ahead(int64_t step, Policy& policy, const std::string& name) {
  if (!batches_.contains(step)) begin(step, policy, name);  // The first one, or the run continues.
  double start = now_s();
  batches_[step]->wait_sampled();
  double sampled = now_s();
  if (step < rules_.steps) {
    Assignment next{next_tasks(step + 1, rules_.tasks_per_step), name, step - 1};
    assigned_.try_emplace(step + 1, std::move(next));
    begin(step + 1, policy, name);
  }
  double waiting = now_s();
  Rollouts rollouts = batches_[step]->take();
  double end = now_s();
  rollouts.staleness = step - 1 - assigned_[step].version;
  PhaseTimes& times = rollouts.times;
  times.wait_rollout = sampled - start;
  times.wait_verify = times.idle = end - waiting;
  if (step < rules_.steps) {
    times.idle = std::clamp(end - batches_[step + 1]->busy_until(), 0.0, times.wait_verify);
  }
  return shared_.put_together(assigned_[step].tasks, std::move(rollouts));
}

Json RolloutSource::ahead(int64_t step) {
  auto next = batches_.find(step + 1);
  if (next == batches_.end()) return Json();
  next->second->wait_sampled();
  next->second->journal()->sync();
  const Assignment& what = assigned_.at(step + 1);
  return {{"step", step + 1}, {"tasks", ids_of(what.tasks)}, {"policy", what.policy}, {"version", what.version}};
}

void RolloutSource::drain() {
  for (auto& [step, batch] : batches_) batch->wait_done();
}

void RolloutSource::done(int64_t step) {
  batches_.erase(step);
  assigned_.erase(step);
  std::error_code gone;
  for (int64_t round = 0; round < rules_.most_rounds; ++round) fs::remove(pending(step, round), gone);
}

void RolloutSource::restore(int64_t step, const Json& recorded) {
  done(step);
  if (recorded.is_null()) return;
  Assignment what;
  for (const Json& id : recorded.at("tasks")) what.tasks.push_back(*tasks_.at(id.get<std::string>()));
  what.policy = recorded.at("policy").get<std::string>();
  what.version = recorded.at("version").get<int64_t>();
  assigned_[recorded.at("step").get<int64_t>()] = std::move(what);
}

}  // namespace tritonrl
