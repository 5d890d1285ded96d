// SPDX-License-Identifier: Apache-2.0
#include "policy/generate.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "base/check.h"

namespace tritonrl {

namespace {

constexpr size_t kPrefillRows = 512;  // Prompt rows of one call.

struct Active {
  size_t request = 0;
  int64_t sample = 0;
  int32_t slot = 0;
  int32_t next_position = 0;  // Of the token drawn last, not yet in the cache.
};

class Engine {
 public:
  Engine(Decoder& decoder, std::span<const GenerateRequest> requests, const SamplingConfig& sampling,
         const StopTokens& stop)
      : decoder_(decoder), requests_(requests), sampling_(sampling), stop_(stop) {
    limit_ = decoder.weights().config.vocab_size;
    if (stop.vocab_limit > 0) limit_ = std::min(limit_, stop.vocab_limit);
    results_.resize(requests.size());
    for (size_t r = 0; r < requests.size(); ++r) {
      CHECK(!requests[r].prompt.empty() && static_cast<int64_t>(requests[r].prompt.size()) < decoder.capacity())
          << "prompt of " << requests[r].prompt.size() << " tokens in slots of " << decoder.capacity();
      results_[r].resize(static_cast<size_t>(requests[r].samples));
      total_ += requests[r].samples;
    }
    for (int64_t s = decoder.slots() - 2; s >= 0; --s) free_.push_back(static_cast<int32_t>(s));
    CHECK(!free_.empty()) << "generate needs two slots";
  }

  std::vector<std::vector<Generated>> run(const GenerateProgress& progress) {
    while (true) {
      admit();
      if (active_.empty()) break;
      if (progress && !progress(done_, total_, tokens_)) break;
      step();
    }
    if (progress) progress(done_, total_, tokens_);
    return std::move(results_);
  }

 private:
  // Gives free slots to waiting samples; computes a prompt when its group comes first.
  void admit() {
    auto prefix_slot = static_cast<int32_t>(decoder_.slots() - 1);
    while (!free_.empty() && request_ < requests_.size()) {
      const GenerateRequest& request = requests_[request_];
      if (sample_ >= request.samples) {
        ++request_;
        sample_ = 0;
        continue;
      }
      if (sample_ == 0) first_logits_ = prefill(request.prompt, prefix_slot);
      auto length = static_cast<int64_t>(request.prompt.size());
      Active row{request_, sample_++, free_.back(), static_cast<int32_t>(length)};
      SampledToken first = draw(row, first_logits_.data_ptr<float>(), 0);
      if (accept(row, first)) continue;  // A one-token answer never takes the slot.
      decoder_.copy_prefix(prefix_slot, row.slot, length);
      free_.pop_back();
      active_.push_back(row);
    }
  }

  at::Tensor prefill(const std::vector<int32_t>& prompt, int32_t slot) {
    at::Tensor logits;
    for (size_t begin = 0; begin < prompt.size(); begin += kPrefillRows) {
      std::vector<DecoderRow> rows;
      for (size_t p = begin; p < std::min(prompt.size(), begin + kPrefillRows); ++p) {
        rows.push_back({prompt[p], slot, static_cast<int32_t>(p)});
      }
      std::vector<int64_t> wanted;
      if (begin + kPrefillRows >= prompt.size()) wanted = {static_cast<int64_t>(rows.size()) - 1};
      logits = decoder_.run(rows, wanted);
    }
    return logits.to(at::kCPU).contiguous();
  }

  // One token for every active row.
  void step() {
    std::vector<DecoderRow> rows;
    std::vector<int64_t> wanted;
    for (const Active& row : active_) {
      wanted.push_back(static_cast<int64_t>(rows.size()));
      rows.push_back({answer(row).tokens.back(), row.slot, row.next_position});
    }
    std::vector<SampledToken> drawn = draw_all(decoder_.run(rows, wanted));
    std::vector<Active> still;
    for (size_t i = 0; i < active_.size(); ++i) {
      Active row = active_[i];
      ++row.next_position;
      if (accept(row, drawn[i])) {
        free_.push_back(row.slot);
      } else {
        still.push_back(row);
      }
    }
    active_ = std::move(still);
  }

  Rng rng_of(const Active& row, int64_t position) const {
    return requests_[row.request].rng.at(static_cast<uint64_t>(row.sample)).at(static_cast<uint64_t>(position));
  }

  SampledToken draw(const Active& row, const float* logits, int64_t position) const {
    return sample_token(logits, limit_, sampling_, rng_of(row, position));
  }

  // The next token of every active row. On a GPU the logits stay there, but for top-k and top-p.
  std::vector<SampledToken> draw_all(at::Tensor logits) {
    std::vector<SampledToken> drawn(active_.size());
    if (!logits.is_cpu() && sampling_.top_k == 0 && sampling_.top_p == 1) {
      bool greedy = sampling_.temperature == 0;
      std::vector<double> uniform;
      for (const Active& row : active_) {
        uniform.push_back(greedy ? -1 : rng_of(row, static_cast<int64_t>(answer(row).tokens.size())).uniform());
      }
      auto [token, log_prob] =
          draw_rows(logits, limit_, greedy ? 1.0f : static_cast<float>(1 / sampling_.temperature), uniform);
      if (token.defined()) {
        token = token.cpu();
        log_prob = log_prob.cpu();
        for (size_t i = 0; i < drawn.size(); ++i) {
          drawn[i] = {token.data_ptr<int32_t>()[i], log_prob.data_ptr<float>()[i]};
        }
        return drawn;
      }
    }
    logits = logits.to(at::kCPU).contiguous();
    int64_t vocab = logits.size(1);
    at::parallel_for(0, static_cast<int64_t>(active_.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        Active& row = active_[static_cast<size_t>(i)];
        drawn[static_cast<size_t>(i)] =
            draw(row, logits.data_ptr<float>() + i * vocab, static_cast<int64_t>(answer(row).tokens.size()));
      }
    });
    return drawn;
  }

  // Records a token; true when the answer is complete.
  bool accept(const Active& row, SampledToken token) {
    Generated& out = answer(row);
    out.tokens.push_back(token.token);
    out.log_probs.push_back(token.log_prob);
    ++tokens_;
    out.finished = std::find(stop_.ids.begin(), stop_.ids.end(), token.token) != stop_.ids.end();
    bool full =
        static_cast<int64_t>(out.tokens.size()) >= sampling_.max_new_tokens || row.next_position >= decoder_.capacity();
    if (out.finished || full) ++done_;
    return out.finished || full;
  }

  Generated& answer(const Active& row) { return results_[row.request][static_cast<size_t>(row.sample)]; }

  Decoder& decoder_;
  std::span<const GenerateRequest> requests_;
  const SamplingConfig& sampling_;
  const StopTokens& stop_;
  int64_t limit_ = 0, total_ = 0, done_ = 0, tokens_ = 0;
  std::vector<std::vector<Generated>> results_;
  std::vector<int32_t> free_;
  std::vector<Active> active_;
  size_t request_ = 0;  // The group being admitted.
  int64_t sample_ = 0;
  at::Tensor first_logits_;  // After that group's prompt, on the CPU.
};

}  // namespace

std::vector<std::vector<Generated>> generate(Decoder& decoder, std::span<const GenerateRequest> requests,
                                             const SamplingConfig& sampling, const StopTokens& stop,
                                             const GenerateProgress& progress) {
  at::InferenceMode no_autograd;
  return Engine(decoder, requests, sampling, stop).run(progress);
}

}  // namespace tritonrl
