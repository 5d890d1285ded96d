// SPDX-License-Identifier: Apache-2.0
#include "policy/generate.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <deque>

#include "base/check.h"

namespace tritonrl {

namespace {

constexpr int64_t kPrefillRows = 512;  // Prompt rows of one call.
constexpr int64_t kGpuPrefillRows = 4096;
constexpr int64_t kMostPrompts = 32;  // Computed at once.

struct Active {
  size_t request = 0;
  int64_t sample = 0;
  int32_t slot = 0;
  int32_t next_position = 0;  // Of the token drawn last, not yet in the cache.
};

class Engine {
 public:
  Engine(Decoder& decoder, std::span<const GenerateRequest> requests, const SamplingConfig& sampling,
         const StopTokens& stop, const OnGenerated& on_generated)
      : decoder_(decoder), requests_(requests), sampling_(sampling), stop_(stop), on_generated_(on_generated) {
    limit_ = decoder.weights().config.vocab_size;
    if (stop.vocab_limit > 0) limit_ = std::min(limit_, stop.vocab_limit);
    results_.resize(requests.size());
    for (size_t r = 0; r < requests.size(); ++r) {
      CHECK(!requests[r].prompt.empty() && static_cast<int64_t>(requests[r].prompt.size()) < decoder.capacity())
          << "prompt of " << requests[r].prompt.size() << " tokens in slots of " << decoder.capacity();
      results_[r].resize(static_cast<size_t>(requests[r].samples));
      total_ += requests[r].samples;
      known_ += static_cast<int64_t>(requests[r].known.size());
    }
    if (!decoder.weights().device.is_cpu()) {
      int64_t spare = decoder.slots() - (total_ - known_);  // No sample that has room is to wait for a prompt's slot.
      prefixes_ = std::clamp<int64_t>(spare >= 0 ? spare : decoder.slots() / 16, 1,
                                      std::min(kMostPrompts, decoder.slots() - 1));
      prefill_rows_ = kGpuPrefillRows;
    }
    for (int64_t s = decoder.slots() - prefixes_ - 1; s >= 0; --s) free_.push_back(static_cast<int32_t>(s));
    CHECK(!free_.empty()) << "generate needs two slots";
  }

  std::vector<std::vector<Generated>> run(const GenerateProgress& progress) {
    for (size_t r = 0; r < requests_.size(); ++r) {
      for (const auto& [sample, known] : requests_[r].known) {
        results_[r].at(static_cast<size_t>(sample)) = known;
        complete(r, sample);
      }
    }
    while (true) {
      admit();
      if (active_.empty()) break;
      step();
      if (progress && !progress(done_, total_, tokens_)) break;
    }
    if (progress) progress(done_, total_, tokens_);
    return std::move(results_);
  }

 private:
  // A prompt that lies in one of the last slots, for its samples to copy.
  struct Prompt {
    size_t request = 0;
    int32_t slot = 0;
    at::Tensor logits;  // Of its last token, on the CPU.
  };

  // Gives free slots to waiting samples.
  void admit() {
    while (!free_.empty()) {
      if (ready_.empty()) prefill();
      if (ready_.empty()) return;
      const Prompt& prompt = ready_.front();
      const GenerateRequest& request = requests_[prompt.request];
      if (sample_ >= request.samples) {
        ready_.pop_front();
        sample_ = 0;
        continue;
      }
      if (request.known.contains(sample_)) {
        ++sample_;
        continue;
      }
      auto length = static_cast<int64_t>(request.prompt.size());
      Active row{prompt.request, sample_++, free_.back(), static_cast<int32_t>(length)};
      SampledToken first = draw(row, prompt.logits.data_ptr<float>(), 0);
      if (accept(row, first)) continue;  // A one-token answer never takes the slot.
      decoder_.copy_prefix(prompt.slot, row.slot, length);
      free_.pop_back();
      active_.push_back(row);
    }
  }

  // Computes the next prompts, as many as there are slots for them.
  void prefill() {
    std::vector<DecoderRow> rows;
    std::vector<int64_t> wanted;
    std::vector<size_t> ends;  // Whose last token each of `wanted` is.
    auto compute = [&] {
      if (rows.empty()) return;
      at::Tensor logits = decoder_.run(rows, wanted).to(at::kCPU).contiguous();
      for (size_t i = 0; i < ends.size(); ++i) ready_[ends[i]].logits = logits[static_cast<int64_t>(i)];
      rows.clear();
      wanted.clear();
      ends.clear();
    };
    for (; request_ < requests_.size() && static_cast<int64_t>(ready_.size()) < prefixes_; ++request_) {
      if (static_cast<int64_t>(requests_[request_].known.size()) == requests_[request_].samples) continue;
      const auto& prompt = requests_[request_].prompt;
      auto slot = static_cast<int32_t>(decoder_.slots() - 1 - static_cast<int64_t>(ready_.size()));
      ready_.push_back({request_, slot, {}});
      for (size_t p = 0; p < prompt.size(); ++p) {
        if (p + 1 == prompt.size()) {
          wanted.push_back(static_cast<int64_t>(rows.size()));
          ends.push_back(ready_.size() - 1);
        }
        rows.push_back({prompt[p], slot, static_cast<int32_t>(p)});
        if (static_cast<int64_t>(rows.size()) >= prefill_rows_) compute();
      }
    }
    compute();
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
    if (!out.finished && !full) return false;
    complete(row.request, row.sample);
    return true;
  }

  void complete(size_t request, int64_t sample) {
    ++done_;
    if (on_generated_) on_generated_(request, sample, results_[request][static_cast<size_t>(sample)]);
  }

  Generated& answer(const Active& row) { return results_[row.request][static_cast<size_t>(row.sample)]; }

  Decoder& decoder_;
  std::span<const GenerateRequest> requests_;
  const SamplingConfig& sampling_;
  const StopTokens& stop_;
  const OnGenerated& on_generated_;
  int64_t limit_ = 0, total_ = 0, known_ = 0, done_ = 0, tokens_ = 0;
  std::vector<std::vector<Generated>> results_;
  std::vector<int32_t> free_;
  std::vector<Active> active_;
  int64_t prefixes_ = 1, prefill_rows_ = kPrefillRows;
  size_t request_ = 0;        // The next whose prompt is to be computed.
  std::deque<Prompt> ready_;  // The first is being admitted.
  int64_t sample_ = 0;        // The next of its samples.
};

}  // namespace

std::vector<std::vector<Generated>> generate(Decoder& decoder, std::span<const GenerateRequest> requests,
                                             const SamplingConfig& sampling, const StopTokens& stop,
                                             const GenerateProgress& progress, const OnGenerated& on_generated) {
  at::InferenceMode no_autograd;
  return Engine(decoder, requests, sampling, stop, on_generated).run(progress);
}

}  // namespace tritonrl
