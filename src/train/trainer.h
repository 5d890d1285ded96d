// SPDX-License-Identifier: Apache-2.0
// Trainer: examples in, updates of the adapter out (with lora.full the weights themselves stand in its place,
// model/lora.h). It does not know which algorithm weighted the examples.
#pragma once

#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include "policy/policy.h"
#include "train/optimizer.h"
#include "train/policy_loss.h"
#include "train/ranks.h"
#include "train/train_example.h"

namespace tritonrl {

struct TrainConfig {
  int64_t epochs = 1;
  int64_t batch_size = 4;             // Examples per update; 0 = all of them.
  int64_t updates = 0;                // Of an epoch, about equally large; 0 = as many as batch_size gives.
  int64_t micro_batch_tokens = 4096;  // Tokens per forward and backward; an update accumulates as many as it needs.
  int64_t max_tokens = 2048;          // Longer examples are left out, and counted.
  int64_t max_steps = 0;              // 0 = as many as the epochs give.
  bool recompute = false;             // Activations are not kept but computed again (model/train_graph.h).
  OptimizerConfig optimizer;

  template <class V>
  void for_each_field(V& v) {
    v("epochs", epochs, "passes over the examples");
    v("batch_size", batch_size, "examples per update; 0 = all");
    v("updates", updates, "updates per epoch, on about as many examples each, in place of batch_size; 0 = by that");
    v("micro_batch_tokens", micro_batch_tokens, "tokens per forward and backward; updates accumulate");
    v("max_tokens", max_tokens, "longer examples are left out");
    v("max_steps", max_steps, "0 = as many as the epochs give");
    v("recompute", recompute,
      "compute activations again for the gradient instead of keeping them: less memory, slower");
    v("optimizer", optimizer, "");
  }
  void validate() const;
};

// How examples with advantages are trained on.
struct PolicyUpdate {
  PolicyLossConfig loss;
  double temperature = 1;                  // Of the sampling that drew them: log p = log softmax(logits / temperature).
  int64_t longest_answer = 1;              // sampling.max_new_tokens.
  const LoraAdapter* reference = nullptr;  // For loss.kl; null = the base model.
};

struct UpdateReport {
  int64_t step = 0, steps = 0;  // 1-based; of how many.
  double loss = 0;              // To imitate: mean over the update's loss tokens. With advantages: the policy loss.
  double lr = 0;
  double grad_norm = 0;  // Before clipping.
  int64_t tokens = 0;    // Prompt and answer tokens processed.
  double seconds = 0;
  PolicyLossMetrics policy;  // Of examples with advantages.
};

// Returns false to stop after this update.
using OnUpdate = std::function<bool(const UpdateReport&)>;

struct TrainHooks {
  OnUpdate on_update;
  // Behind each forward and backward; its work may still be under way on the device.
  std::function<void()> on_part;
  // Who trains the same policy on the same examples: micro batches are dealt out, gradients and reports are those of
  // all together. Null = nobody.
  Ranks* ranks = nullptr;

  TrainHooks() = default;
  template <class F, class = std::enable_if_t<std::is_invocable_v<F&, const UpdateReport&>>>
  TrainHooks(F f) : on_update(std::move(f)) {}
};

struct TrainSummary {
  int64_t steps = 0, examples = 0, left_out = 0, tokens = 0;
  double seconds = 0, first_loss = 0, last_loss = 0;
  PolicyLossMetrics policy;  // Of all updates.
};

// Trains policy.adapter() (REQUIRES: has one) on examples to imitate: every update's loss is
// sum(weight * -log p) / sum(|weight|) over its examples. `optimizer` continues from where it is; null = a fresh one.
// from_update: so many updates are behind adapter and optimizer already; the rest comes with the same bits (on the CPU)
// as if there had been no break.
// Deterministic from rng on the CPU, for as many ranks as there are; other numbers of ranks give the same update but
// for the order of sums (and the adapter's dropout where an update has fewer micro batches than there are ranks).
// Throws Error (environment) when loss, gradient or adapter are not finite any more.
TrainSummary train(Policy& policy, const std::vector<TrainExample>& examples, const TrainConfig& config, const Rng& rng,
                   const TrainHooks& hooks = {}, AdamW* optimizer = nullptr, int64_t from_update = 0);

// Tokens of the longest example that is trained on: config.max_tokens or the model's window.
int64_t longest_example(const Policy& policy, const TrainConfig& config);

// The examples of the next update; blocks until there are some.
using NextExamples = std::function<std::vector<TrainExample>()>;
// As train(), on examples that come as they are needed: `updates` in all, of which the first from_update are behind it
// and are not asked for. They are no longer than config.max_tokens and the model's window. Of the config, epochs,
// batch_size, updates and max_steps are the caller's.
TrainSummary train_streamed(Policy& policy, int64_t updates, const NextExamples& next, const TrainConfig& config,
                            const Rng& rng, const TrainHooks& hooks = {}, AdamW* optimizer = nullptr,
                            int64_t from_update = 0);

// Of each answer: the divergence of policy.adapter() as it is from `reference` (null = the base model), estimated on
// the answer's own tokens and summed over them, in nats; k1, k2 or k3 as in policy_loss.h. For KL as a part of the
// reward.
std::vector<double> answer_divergences(Policy& policy, const std::vector<TrainExample>& answers, KlEstimator estimator,
                                       double temperature, const LoraAdapter* reference, int64_t micro_batch_tokens);

// As train(), on examples with advantages, by train/policy_loss.h and without dropout: a ratio is between policies, and
// a dropped-out one is another. "Old" is the policy as it is now: its log-probabilities are computed first, unless
// there is one update only and no correction, where old and present are the same. An update all of whose advantages are
// 0 is none.
TrainSummary train_policy(Policy& policy, const std::vector<TrainExample>& examples, const TrainConfig& config,
                          const PolicyUpdate& how, const Rng& rng, const TrainHooks& hooks = {},
                          AdamW* optimizer = nullptr);

}  // namespace tritonrl
