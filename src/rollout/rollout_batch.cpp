// SPDX-License-Identifier: Apache-2.0
#include "rollout/rollout_batch.h"

#include <limits>

#include "base/log.h"
#include "model/device.h"

namespace tritonrl {

RolloutBatch::RolloutBatch(PolicySnapshot policy, Verifier& verifier, RolloutWork work)
    : policy_(std::move(policy)), verifier_(verifier), work_(std::move(work)) {
  wait_for(policy_.weights().device);  // What was merged on this thread's stream.
  thread_ = std::thread([this] { run(); });
}

RolloutBatch::~RolloutBatch() {
  stopped_ = true;
  thread_.join();
}

void RolloutBatch::run() {
  auto say = [this](bool done) {
    std::lock_guard lock(mutex_);
    if (!sampled_) sampled_at_ = now_s();
    sampled_ = true;
    done_ = done;
    changed_.notify_all();
  };
  try {
    OwnStream stream(policy_.weights().device);
    Collecting how{work_.what, work_.stream, work_.journal.get(), work_.limits};
    how.on_sampled = [&] { say(false); };
    how.stopped = [this] { return stopped_.load(); };
    rollouts_ =
        hold_conversations(policy_, verifier_, work_.tasks, work_.samples, work_.sampling, work_.rng, work_.turns, how);
  } catch (...) {
    problem_ = std::current_exception();
  }
  say(true);
}

double RolloutBatch::busy_until() {
  std::lock_guard lock(mutex_);
  return sampled_ ? sampled_at_ : std::numeric_limits<double>::infinity();
}

void RolloutBatch::wait_sampled() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return sampled_; });
  if (done_ && problem_) std::rethrow_exception(problem_);
}

void RolloutBatch::wait_done() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_; });
  if (problem_) std::rethrow_exception(problem_);
}

Rollouts RolloutBatch::take() {
  wait_done();
  return std::move(rollouts_);
}

}  // namespace tritonrl
