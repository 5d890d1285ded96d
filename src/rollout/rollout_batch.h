// SPDX-License-Identifier: Apache-2.0
// RolloutBatch: the rollouts of one step, sampled and verified on a thread of their own, while the caller does
// something else.
//
//   RolloutBatch batch(policy.snapshot(), verifier, work);
//   batch.wait_sampled();                  // the policy's device is free again; verdicts may still be coming
//   Rollouts rollouts = batch.take();
//
// Answers are those of the same work on the caller's thread, bit for bit on the CPU. On a GPU the thread has a stream
// of its own. Thread rule: one thread uses a batch. Snapshot and verifier are used by the batch's thread until take()
// or the end; other streams of the same verifier may be open meanwhile.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "rollout/conversation.h"

namespace tritonrl {

struct RolloutWork {
  std::string what;  // Names progress bars and what is logged.
  std::vector<Task> tasks;
  int64_t samples = 1;
  SamplingConfig sampling;
  Rng rng;
  TurnRules turns;
  bool stream = false;
  std::shared_ptr<RolloutJournal> journal = nullptr;
  OwnLimits limits = {};
};

class RolloutBatch {
 public:
  RolloutBatch(PolicySnapshot policy, Verifier& verifier, RolloutWork work);
  // Stops sampling and waits; what the journal has is there for another try.
  ~RolloutBatch();
  RolloutBatch(const RolloutBatch&) = delete;
  RolloutBatch& operator=(const RolloutBatch&) = delete;

  // Blocks until nothing more is drawn, and all that was is in the journal. All three throw what sampling or verifying
  // threw.
  void wait_sampled();
  void wait_done();  // Nothing is under way any more.
  Rollouts take();
  // now_s() when the last answer was there; infinity before.
  double busy_until();
  RolloutJournal* journal() const { return work_.journal.get(); }

 private:
  void run();

  const PolicySnapshot policy_;
  Verifier& verifier_;
  const RolloutWork work_;
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;  // Guards all below.
  std::condition_variable changed_;
  bool sampled_ = false, done_ = false;
  double sampled_at_ = 0;
  Rollouts rollouts_;
  std::exception_ptr problem_;
  std::thread thread_;
};

}  // namespace tritonrl
