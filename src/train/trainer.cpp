// SPDX-License-Identifier: Apache-2.0
#include "train/trainer.h"

#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "model/train_graph.h"

namespace tritonrl {

void TrainConfig::validate() const {
  if (epochs < 1 || batch_size < 1 || micro_batch_tokens < 1 || max_tokens < 2 || max_steps < 0) {
    throw usage_error("epochs, batch_size, micro_batch_tokens and max_tokens must be positive");
  }
}

namespace {

// The examples of one update, cut into packed batches of at most `limit` tokens (at least one example each).
std::vector<PackedBatch> pack(const std::vector<const TrainExample*>& examples, int64_t limit, double scale) {
  std::vector<PackedBatch> batches;
  for (const TrainExample* example : examples) {
    if (batches.empty() || batches.back().size() + static_cast<int64_t>(example->tokens.size()) > limit)
      batches.emplace_back();
    std::vector<float> weights = example->weights;
    for (float& w : weights) w = static_cast<float>(w * scale);
    batches.back().append(example->tokens, weights);
  }
  return batches;
}

}  // namespace

TrainSummary train(Policy& policy, const std::vector<TrainExample>& examples, const TrainConfig& config, const Rng& rng,
                   const OnUpdate& on_update) {
  CHECK(policy.has_adapter()) << "train without an adapter";
  TrainSummary summary;
  double start = now_s();
  std::vector<const TrainExample*> usable;
  for (const auto& example : examples) {
    if (static_cast<int64_t>(example.tokens.size()) <= config.max_tokens) usable.push_back(&example);
  }
  summary.left_out = static_cast<int64_t>(examples.size() - usable.size());
  summary.examples = static_cast<int64_t>(usable.size());
  if (summary.left_out > 0)
    log_warn(cat(summary.left_out, " examples are longer than ", config.max_tokens, " tokens: left out"));
  if (usable.empty()) return summary;

  auto count = static_cast<int64_t>(usable.size());
  int64_t per_epoch = (count + config.batch_size - 1) / config.batch_size, steps = per_epoch * config.epochs;
  if (config.max_steps > 0) steps = std::min(steps, config.max_steps);
  LoraAdapter& adapter = policy.adapter();
  AdamW optimizer(config.optimizer, adapter.parameters());
  std::vector<const TrainExample*> order;
  for (int64_t step = 0; step < steps; ++step) {
    double step_start = now_s();
    if (step % per_epoch == 0) {
      order = usable;
      Rng shuffle = rng.at("epoch").at(static_cast<uint64_t>(step / per_epoch));
      shuffle.shuffle(order);
    }
    int64_t begin = step % per_epoch * config.batch_size, end = std::min(count, begin + config.batch_size);
    std::vector<const TrainExample*> chosen(order.begin() + begin, order.begin() + end);
    double total = 0;
    for (const auto* example : chosen) {
      for (float w : example->weights) total += std::abs(w);
    }
    UpdateReport report{step + 1, steps, 0, learning_rate(config.optimizer, step, steps), 0, 0, 0};
    adapter.zero_gradients();
    if (total > 0) {
      auto batches = pack(chosen, config.micro_batch_tokens, 1 / total);
      for (size_t b = 0; b < batches.size(); ++b) {
        Rng dropout = rng.at("dropout").at(static_cast<uint64_t>(step)).at(b);
        report.loss += forward_backward(policy.weights(), adapter, batches[b], dropout).loss;
        report.tokens += batches[b].size();
      }
      report.grad_norm = optimizer.step(adapter.gradients(), report.lr);
      if (!std::isfinite(report.grad_norm))
        log_warn(cat("step ", step + 1, ": gradient is not finite, update skipped"));
    }
    policy.adapter_changed();
    report.seconds = now_s() - step_start;
    summary.steps = step + 1;
    summary.tokens += report.tokens;
    if (step == 0) summary.first_loss = report.loss;
    summary.last_loss = report.loss;
    bool go_on = !on_update || on_update(report);
    if (!go_on || interrupted()) {
      summary.stopped_early = step + 1 < steps;
      break;
    }
  }
  ::malloc_trim(0);
  summary.seconds = now_s() - start;
  return summary;
}

}  // namespace tritonrl
