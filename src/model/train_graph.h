// SPDX-License-Identifier: Apache-2.0
// Forward and backward of a decoder with a LoRA adapter on a packed batch, written out by hand.
//
// Sequences lie one behind the other without padding and do not see each other. Only what is trained gets gradients (an
// adapter, or every weight: LoraAdapter::full, which then also stands in for the weights that are passed), so no
// gradient of a frozen matrix is ever formed, the head runs on the rows that carry loss alone, and logits exist one
// chunk of rows at a time. Distributions are over the tokens that can be sampled (Weights::vocab_limit), as the
// sampler's are: a model's padded rows have no share. Autograd is the oracle in the tests.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/rng.h"
#include "model/files/weights.h"
#include "model/lora.h"

namespace tritonrl {

// A packed batch. Row t of a sequence predicts the sequence's token t + 1.
struct PackedBatch {
  std::vector<int32_t> tokens;        // All sequences, one behind the other.
  std::vector<int64_t> starts = {0};  // S + 1 offsets into tokens.
  std::vector<int64_t> loss_rows;     // Rows whose prediction carries loss (or whose log-probability is wanted).
  std::vector<float> loss_weights;    // One a loss row: d loss / d(-log p).

  // Appends a sequence; weights[t] belongs to predicting tokens[t] (weights[0] is ignored, 0 = no loss).
  void append(const std::vector<int32_t>& sequence, const std::vector<float>& weights);
  int64_t size() const { return static_cast<int64_t>(tokens.size()); }
};

struct LossResult {
  double loss = 0;               // sum of weight * -log p, or what the objective said.
  std::vector<float> log_probs;  // One a loss row: log p of the true next token.
  std::vector<float> entropies;  // One a loss row, in nats, of the distribution of the next token. With an Objective.
};

// A loss that depends on the log-probabilities in another way than linearly. log p = log softmax(logits / temperature).
struct RowGradients {
  std::vector<float> weights;    // d loss / d(-log p), one a loss row.
  std::vector<float> entropies;  // d loss / d entropy, one a loss row; empty = 0.
};
struct Objective {
  double temperature = 1;
  // From all loss rows of the batch: returns the loss and fills the gradients. The batch's own weights are ignored.
  std::function<double(const LossResult& rows, RowGradients* gradients)> loss;
};

// What is kept of the forward pass for the backward.
enum class Keep {
  kActivations,  // All that it needs.
  kInputs,  // Each layer's input alone; the rest is computed again, a layer at a time (Chen et al. 2016): a forward
            // pass more, the same bits on the CPU.
};

// Computes the loss and adds its gradient to the adapter's (REQUIRES: zero_gradients() was called, weights loaded for
// training). `dropout` drives the adapter's dropout.
LossResult forward_backward(const Weights& weights, LoraAdapter& adapter, const PackedBatch& batch, Rng dropout,
                            Keep keep = Keep::kActivations);
// The same for an objective: the head runs twice, first for the log-probabilities.
LossResult forward_backward(const Weights& weights, LoraAdapter& adapter, const PackedBatch& batch, Rng dropout,
                            const Objective& objective, Keep keep = Keep::kActivations);

// Log-probabilities only; adapter may be null. No dropout.
LossResult forward(const Weights& weights, const LoraAdapter* adapter, const PackedBatch& batch,
                   double temperature = 1);

// Logits of every row, float [T, V]. For tests and small inputs.
at::Tensor forward_logits(const Weights& weights, const LoraAdapter* adapter, const std::vector<int32_t>& tokens);

}  // namespace tritonrl
