// SPDX-License-Identifier: Apache-2.0
#include "train/trainer.h"

#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <type_traits>

#include "base/check.h"
#include "base/error.h"
#include "base/log.h"
#include "base/process/interrupt.h"
#include "model/train_graph.h"

namespace tritonrl {

void TrainConfig::validate() const {
  if (epochs < 1 || batch_size < 0 || updates < 0 || micro_batch_tokens < 1 || max_tokens < 2 || max_steps < 0) {
    throw usage_error(
        "epochs, micro_batch_tokens and max_tokens must be positive, batch_size and updates not negative");
  }
}

namespace {

int64_t tokens_of(const TrainExample& example) { return static_cast<int64_t>(example.tokens.size()); }

using Examples = std::vector<const TrainExample*>;

constexpr size_t kShownTasks = 20;

// Cut so that each part has at most `limit` tokens (at least one example each).
std::vector<Examples> cut(const Examples& examples, int64_t limit) {
  std::vector<Examples> parts;
  int64_t tokens = 0;
  for (const TrainExample* example : examples) {
    if (parts.empty() || tokens + tokens_of(*example) > limit) {
      parts.emplace_back();
      tokens = 0;
    }
    parts.back().push_back(example);
    tokens += tokens_of(*example);
  }
  return parts;
}

// All answer tokens carry loss.
PackedBatch answers_of(const Examples& examples) {
  PackedBatch batch;
  for (const TrainExample* example : examples) {
    std::vector<float> weights(example->tokens.size(), 1);
    std::fill(weights.begin(), weights.begin() + example->answer_begin, 0.0f);
    batch.append(example->tokens, weights);
  }
  return batch;
}

// Cut so that every rank has a part if there are examples enough; part p is rank (p mod ranks)'s.
std::vector<Examples> deal(const Examples& examples, int64_t limit, const Ranks* ranks) {
  if (ranks && ranks->size() > 1) {
    int64_t tokens = 0;
    for (const TrainExample* example : examples) tokens += tokens_of(*example);
    limit = std::min(limit, std::max<int64_t>(1, tokens / ranks->size()));
  }
  return cut(examples, limit);
}

bool is_mine(size_t part, const Ranks* ranks) {
  return !ranks || static_cast<int64_t>(part) % ranks->size() == ranks->rank();
}

using LogProbs = std::map<const TrainExample*, std::vector<float>>;

// Log-probabilities of the answers' tokens under base + adapter. Each rank computes its parts, and all have all.
LogProbs score_answers(const Weights& weights, const LoraAdapter* adapter, const Examples& answers, double temperature,
                       int64_t micro_batch_tokens, const std::function<void()>& on_part = {}, Ranks* ranks = nullptr) {
  std::vector<Examples> parts = deal(answers, micro_batch_tokens, ranks);
  std::string mine;  // The floats of this rank's parts.
  for (size_t p = 0; p < parts.size(); ++p) {
    if (!is_mine(p, ranks)) continue;
    auto log_probs = forward(weights, adapter, answers_of(parts[p]), temperature).log_probs;
    mine.append(reinterpret_cast<const char*>(log_probs.data()), log_probs.size() * sizeof(float));
    if (on_part) on_part();
  }
  auto all = ranks ? ranks->gather(mine) : std::vector{std::move(mine)};
  std::vector<size_t> at(all.size());
  LogProbs out;
  for (size_t p = 0; p < parts.size(); ++p) {
    size_t rank = p % all.size();
    for (const TrainExample* example : parts[p]) {
      std::vector<float>& own = out[example];
      own.resize(static_cast<size_t>(tokens_of(*example) - example->answer_begin));
      size_t bytes = own.size() * sizeof(float);
      CHECK(at[rank] + bytes <= all[rank].size()) << "rank " << rank << " scored other answers";
      if (bytes > 0) std::memcpy(own.data(), all[rank].data() + at[rank], bytes);
      at[rank] += bytes;
    }
  }
  return out;
}

class Training {
 public:
  Training(Policy& policy, const TrainConfig& config, const Rng& rng, const TrainHooks& hooks, AdamW* optimizer)
      : policy_(policy), config_(config), rng_(rng), hooks_(hooks) {
    CHECK(policy.has_adapter()) << "train without an adapter";
    if (!optimizer) own_.emplace(config.optimizer, policy.adapter().parameters());
    optimizer_ = optimizer ? optimizer : &*own_;
  }
  virtual ~Training() = default;

  TrainSummary run(const std::vector<TrainExample>& examples, int64_t from_update = 0) {
    double start = now_s();
    int64_t longest = longest_example(policy_, config_);
    for (const auto& example : examples) {
      if (tokens_of(example) <= longest) usable_.push_back(&example);
    }
    summary_.left_out = static_cast<int64_t>(examples.size() - usable_.size());
    summary_.examples = static_cast<int64_t>(usable_.size());
    if (summary_.left_out > 0)
      log_warn(cat(summary_.left_out, " examples are longer than ", longest, " tokens",
                   longest < config_.max_tokens ? " (the model's window)" : "", ": left out"));
    if (usable_.empty()) return summary_;

    auto count = static_cast<int64_t>(usable_.size());
    int64_t size = config_.batch_size > 0 ? config_.batch_size : count;
    int64_t per_epoch = config_.updates > 0 ? std::min(config_.updates, count) : (count + size - 1) / size;
    int64_t steps = per_epoch * config_.epochs;
    if (config_.max_steps > 0) steps = std::min(steps, config_.max_steps);
    begin(steps);
    Examples order;
    updates(from_update, steps, [&](int64_t step) {
      if (order.empty() || step % per_epoch == 0) {
        order = usable_;
        Rng shuffle = rng_.at("epoch").at(static_cast<uint64_t>(step / per_epoch));
        shuffle.shuffle(order);
      }
      int64_t part = step % per_epoch, from = part * size, to = std::min(count, from + size);
      if (config_.updates > 0) from = part * count / per_epoch, to = (part + 1) * count / per_epoch;
      return Examples(order.begin() + from, order.begin() + to);
    });
    summary_.seconds = now_s() - start;
    return summary_;
  }

  TrainSummary run_streamed(int64_t steps, const NextExamples& next, int64_t from_update) {
    double start = now_s();
    begin(steps);
    std::vector<TrainExample> held;
    updates(from_update, steps, [&](int64_t) {
      held = next();
      CHECK(!held.empty()) << "an update without examples";
      summary_.examples += static_cast<int64_t>(held.size());
      Examples chosen;
      for (const TrainExample& example : held) chosen.push_back(&example);
      return chosen;
    });
    summary_.seconds = now_s() - start;
    return summary_;
  }

 protected:
  // Before the first of `steps` updates.
  virtual void begin(int64_t steps) { (void)steps; }
  // Adds an update's gradients to the adapter's; false = there is nothing to learn from it.
  virtual bool gradients(const Examples& chosen, const Rng& dropout, UpdateReport* report) = 0;

  // Updates from_update + 1 to `steps`, each on what `choose` gives for its number (from 0).
  void updates(int64_t from_update, int64_t steps, const std::function<Examples(int64_t)>& choose) {
    const bool constant = config_.optimizer.schedule == Schedule::kConstant;
    for (int64_t step = from_update; step < steps; ++step) {
      double step_start = now_s();
      const Examples chosen = choose(step);
      UpdateReport report;
      report.step = step + 1;
      report.steps = steps;
      report.lr = learning_rate(config_.optimizer, constant ? optimizer_->steps_taken() : step, steps);
      policy_.adapter().zero_gradients();
      bool any = gradients(chosen, rng_.at("dropout").at(static_cast<uint64_t>(step)), &report);
      if (hooks_.ranks) add_up(any, &report);
      if (!std::isfinite(report.loss)) throw not_finite("the loss", step, chosen);
      if (any) {
        report.grad_norm = optimizer_->step(policy_.adapter().gradients(), report.lr);
        if (!std::isfinite(report.grad_norm)) throw not_finite("the gradient", step, chosen);
        if (step + 1 == steps && !finite_parameters()) throw not_finite("the adapter", step, chosen);
      }
      policy_.adapter_changed();
      report.seconds = now_s() - step_start;
      summary_.steps = step + 1;
      summary_.tokens += report.tokens;
      summary_.policy.add(report.policy);
      if (step == from_update) summary_.first_loss = report.loss;
      summary_.last_loss = report.loss;
      bool further_turns = !hooks_.on_update || hooks_.on_update(report);
      bool stops = !further_turns || interrupted();
      if (hooks_.ranks && hooks_.ranks->any(stops)) {
        stops = true;
        interrupt();  // Nobody may take the phase for whole.
      }
      if (stops) break;
    }
    ::malloc_trim(0);
  }

  // The update becomes that of all ranks. `any` is the same on each.
  void add_up(bool any, UpdateReport* report) const {
    struct Share {
      double loss;
      int64_t tokens;
      PolicyLossMetrics policy;
      bool stops;  // Was that rank asked to?
    } share{report->loss, report->tokens, report->policy, interrupted()};
    static_assert(std::is_trivially_copyable_v<Share>);
    report->loss = 0;
    report->tokens = 0;
    report->policy = {};
    for (const std::string& bytes : hooks_.ranks->gather({reinterpret_cast<const char*>(&share), sizeof share})) {
      CHECK(bytes.size() == sizeof share) << "a rank of another program";
      std::memcpy(&share, bytes.data(), sizeof share);
      report->loss += share.loss;
      report->tokens += share.tokens;
      report->policy.add(share.policy);
      if (share.stops) interrupt();
    }
    if (any) hooks_.ranks->sum(policy_.adapter().gradients());
  }

  // The last update of a phase is followed by no loss that would tell.
  bool finite_parameters() {
    for (const auto& p : policy_.adapter().parameters()) {
      if (!at::isfinite(p).all().item<bool>()) return false;
    }
    return true;
  }

  static Error not_finite(const std::string& what, int64_t step, const Examples& examples) {
    std::set<std::string> ids;
    for (const TrainExample* example : examples) ids.insert(example->task_id);
    std::vector<std::string> shown(ids.begin(), ids.end());
    size_t all = shown.size();
    if (all > kShownTasks) shown.resize(kShownTasks);
    return environment_error(
        cat(what, " of update ", step + 1, " is not finite"),
        cat("tasks ", join(shown, ", "), all > kShownTasks ? cat(" and ", all - kShownTasks, " more") : ""),
        "the last checkpoint is whole; begin another run with a lower learning rate "
        "(run.start_from takes over its SFT)");
  }

  void part_is_behind() const {
    if (hooks_.on_part) hooks_.on_part();
  }

  Keep keep() const { return config_.recompute ? Keep::kInputs : Keep::kActivations; }

  Policy& policy_;
  const TrainConfig& config_;
  Rng rng_;
  Examples usable_;
  const TrainHooks& hooks_;

 private:
  std::optional<AdamW> own_;
  AdamW* optimizer_;
  TrainSummary summary_;
};

class Imitation : public Training {
 public:
  using Training::Training;

 private:
  bool gradients(const Examples& chosen, const Rng& dropout, UpdateReport* report) override {
    double total = 0;
    for (const auto* example : chosen) {
      for (float w : example->weights) total += std::abs(w);
    }
    if (total == 0) return false;
    auto parts = deal(chosen, config_.micro_batch_tokens, hooks_.ranks);
    for (size_t p = 0; p < parts.size(); ++p) {
      if (!is_mine(p, hooks_.ranks)) continue;
      PackedBatch batch;
      for (const TrainExample* example : parts[p]) {
        std::vector<float> weights = example->weights;
        for (float& w : weights) w = static_cast<float>(w / total);
        batch.append(example->tokens, weights);
      }
      report->loss += forward_backward(policy_.weights(), policy_.adapter(), batch, dropout.at(p), keep()).loss;
      report->tokens += batch.size();
      part_is_behind();
    }
    return true;
  }
};

class PolicyGradient : public Training {
 public:
  PolicyGradient(Policy& policy, const TrainConfig& config, const PolicyUpdate& how, const Rng& rng,
                 const TrainHooks& hooks, AdamW* optimizer)
      : Training(policy, config, rng, hooks, optimizer), how_(how), dropout_(policy.adapter().config.dropout) {
    policy.adapter().config.dropout = 0;
  }
  ~PolicyGradient() override { policy_.adapter().config.dropout = dropout_; }

 private:
  void begin(int64_t steps) override {
    const PolicyLossConfig& loss = how_.loss;
    if (steps > 1 || loss.correction != Correction::kNone || loss.veto > 0) score(&policy_.adapter(), &old_);
    if (loss.kl > 0) score(how_.reference, &reference_);
  }

  void score(const LoraAdapter* adapter, LogProbs* out) const {
    *out = score_answers(policy_.weights(), adapter, usable_, how_.temperature, config_.micro_batch_tokens,
                         hooks_.on_part, hooks_.ranks);
  }

  bool gradients(const Examples& chosen, const Rng& dropout, UpdateReport* report) override {
    const PolicyLossConfig& loss = how_.loss;
    int64_t all_tokens = 0;
    Examples counted;  // The others' loss and gradient are 0, whatever the policy.
    for (const TrainExample* example : chosen) {
      all_tokens += static_cast<int64_t>(example->sampled_log_probs.size());
      bool none = std::all_of(example->weights.begin(), example->weights.end(), [](float w) { return w == 0; });
      if (!none || loss.kl > 0 || loss.entropy > 0) counted.push_back(example);
    }
    auto parts = deal(counted, config_.micro_batch_tokens, hooks_.ranks);
    for (size_t p = 0; p < parts.size(); ++p) {
      if (!is_mine(p, hooks_.ranks)) continue;
      const Examples& part = parts[p];
      PackedBatch batch = answers_of(part);
      Objective objective{how_.temperature, [&](const LossResult& rows, RowGradients* gradients) {
                            return loss_of(part, rows, static_cast<int64_t>(chosen.size()), all_tokens, gradients,
                                           &report->policy);
                          }};
      report->loss += forward_backward(policy_.weights(), policy_.adapter(), batch, dropout, objective, keep()).loss;
      report->tokens += batch.size();
      part_is_behind();
    }
    return !counted.empty();
  }

  double loss_of(const Examples& part, const LossResult& rows, int64_t answers, int64_t all_tokens,
                 RowGradients* gradients, PolicyLossMetrics* metrics) const {
    double sum = 0;
    size_t at = 0;
    std::vector<double> slopes;
    for (const TrainExample* example : part) {
      size_t n = example->sampled_log_probs.size();
      AnswerTerms terms;
      terms.log_probs = std::span(rows.log_probs).subspan(at, n);
      terms.old_log_probs = old_.empty() ? terms.log_probs : std::span<const float>(old_.at(example));
      terms.sampled_log_probs = example->sampled_log_probs;
      terms.advantages = std::span(example->weights).subspan(static_cast<size_t>(example->answer_begin), n);
      if (!reference_.empty()) terms.reference = reference_.at(example);
      double weight = token_weight(how_.loss, static_cast<int64_t>(n), answers, all_tokens, how_.longest_answer);
      slopes.assign(n, 0);
      sum += policy_loss(how_.loss, terms, weight, slopes, metrics);
      for (size_t t = 0; t < n; ++t) {
        gradients->weights.push_back(static_cast<float>(-slopes[t]));
        metrics->entropy += rows.entropies[at + t];
        if (how_.loss.entropy > 0) {
          sum -= weight * how_.loss.entropy * rows.entropies[at + t];
          gradients->entropies.push_back(static_cast<float>(-weight * how_.loss.entropy));
        }
      }
      at += n;
    }
    return sum;
  }

  const PolicyUpdate& how_;
  double dropout_;
  LogProbs old_, reference_;
};

}  // namespace

TrainSummary train(Policy& policy, const std::vector<TrainExample>& examples, const TrainConfig& config, const Rng& rng,
                   const TrainHooks& hooks, AdamW* optimizer, int64_t from_update) {
  CHECK(from_update == 0 || optimizer) << "continuing needs the optimizer's state";
  return Imitation(policy, config, rng, hooks, optimizer).run(examples, from_update);
}

int64_t longest_example(const Policy& policy, const TrainConfig& config) {
  return std::min(config.max_tokens, policy.weights().rope.cos.size(0));
}

TrainSummary train_streamed(Policy& policy, int64_t updates, const NextExamples& next, const TrainConfig& config,
                            const Rng& rng, const TrainHooks& hooks, AdamW* optimizer, int64_t from_update) {
  CHECK(from_update == 0 || optimizer) << "continuing needs the optimizer's state";
  return Imitation(policy, config, rng, hooks, optimizer).run_streamed(updates, next, from_update);
}

std::vector<double> answer_divergences(Policy& policy, const std::vector<TrainExample>& answers, KlEstimator estimator,
                                       double temperature, const LoraAdapter* reference, int64_t micro_batch_tokens) {
  Examples all;
  for (const TrainExample& answer : answers) all.push_back(&answer);
  const LoraAdapter* own = policy.has_adapter() ? &policy.adapter() : nullptr;
  auto here = score_answers(policy.weights(), own, all, temperature, micro_batch_tokens);
  auto there = score_answers(policy.weights(), reference, all, temperature, micro_batch_tokens);
  std::vector<double> out;
  for (const TrainExample* answer : all) {
    double sum = 0;
    for (size_t t = 0; t < here[answer].size(); ++t) {
      sum += kl_estimate(estimator, static_cast<double>(there[answer][t]) - here[answer][t]);
    }
    out.push_back(sum);
  }
  return out;
}

TrainSummary train_policy(Policy& policy, const std::vector<TrainExample>& examples, const TrainConfig& config,
                          const PolicyUpdate& how, const Rng& rng, const TrainHooks& hooks, AdamW* optimizer) {
  for (const TrainExample& example : examples) {
    CHECK(static_cast<size_t>(example.answer_begin) + example.sampled_log_probs.size() == example.tokens.size())
        << "an answer without the log-probabilities it was drawn with";
  }
  return PolicyGradient(policy, config, how, rng, hooks, optimizer).run(examples);
}

}  // namespace tritonrl
