// SPDX-License-Identifier: Apache-2.0
// Credit: from rewarded rollouts to per-token weights. The algorithms differ here and nowhere else; the trainer is
// blind to which one made its examples. One small file an algorithm.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/config.h"
#include "policy/rollout.h"

namespace tritonrl {

// One sequence to train on. weights[t] multiplies -log p(tokens[t] | before); 0 = no loss. Prompt tokens have 0.
struct TrainExample {
  std::vector<int32_t> tokens;
  std::vector<float> weights;
  std::string task_id;
};

// [group][rollout]; empty = harness fault, never used.
using Rewards = std::vector<std::vector<std::optional<double>>>;
// [group][rollout]; was it verified correct?
using Correct = std::vector<std::vector<bool>>;

class Credit {
 public:
  virtual ~Credit() = default;
  // Same inputs, same examples, in the order of the groups.
  virtual std::vector<TrainExample> assign(const std::vector<Group>& groups, const Rewards& rewards,
                                           const Correct& correct) const = 0;
};

// A supervised example: weight 1 on every token from answer_begin on.
TrainExample supervised_example(std::vector<int32_t> tokens, int64_t answer_begin, std::string task_id);
// The same from a rollout.
TrainExample example_of(const Group& group, const Rollout& rollout);

// Best-of-N: keep up to k of a task's N samples, best reward first, and imitate them.
struct BestOfNConfig {
  int64_t keep = 3;
  std::string rule =
      "correct";  // correct: verified correct only. reward: reward above the threshold (the published rule).
  double reward_above = 0.5;
  bool distinct = true;  // Equal answers count once.

  template <class V>
  void for_each_field(V& v) {
    v("keep", keep, "samples kept per task (K)");
    v.choice("rule", rule, {"correct", "reward"}, "correct = verified correct; reward = above reward_above");
    v("reward_above", reward_above, "threshold of rule: reward");
    v("distinct", distinct, "equal answers count once");
  }
  void validate() const;
};
std::unique_ptr<Credit> make_best_of_n(const BestOfNConfig& config);

}  // namespace tritonrl
