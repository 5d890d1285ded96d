// SPDX-License-Identifier: Apache-2.0
#include "policy/generate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "base/process/build_paths.h"
#include "model/train_graph.h"

namespace tritonrl::generate_test {
namespace {

std::shared_ptr<const Weights> tiny() {
  static auto weights = [] {
    LoadOptions options;
    options.dtype = at::kFloat;
    return load_weights(source_dir() + "/tests/golden/model/llama_tiny", options);
  }();
  return weights;
}

std::vector<GenerateRequest> requests(int64_t count, int64_t samples) {
  std::vector<GenerateRequest> out;
  for (int64_t r = 0; r < count; ++r) {
    GenerateRequest request;
    for (int64_t p = 0; p < 3 + r * 4; ++p) request.prompt.push_back(static_cast<int32_t>((r * 31 + p * 7) % 600));
    request.samples = samples;
    request.rng = Rng(9).at(static_cast<uint64_t>(r));
    out.push_back(request);
  }
  return out;
}

SamplingConfig sampling(double temperature, int64_t max_new_tokens) {
  SamplingConfig config;
  config.temperature = temperature;
  config.max_new_tokens = max_new_tokens;
  return config;
}

TEST(Generate, SameSeedSameRolloutsWhateverTheBatch) {
  auto all = requests(5, 3);
  StopTokens stop{{2, 77}, 600};
  auto run = [&](int64_t slots, std::span<const GenerateRequest> some) {
    Decoder decoder(tiny(), slots, 64);
    return generate(decoder, some, sampling(1.5, 30), stop);
  };
  auto narrow = run(2, all), wide = run(20, all);
  auto third_alone = run(7, std::span(all).subspan(3, 1));
  for (size_t r = 0; r < all.size(); ++r) {
    for (size_t s = 0; s < 3; ++s) {
      EXPECT_EQ(narrow[r][s].tokens, wide[r][s].tokens) << r << " " << s;
      EXPECT_EQ(narrow[r][s].log_probs, wide[r][s].log_probs);
    }
  }
  EXPECT_EQ(third_alone[0][2].tokens, wide[3][2].tokens);
  EXPECT_NE(wide[3][0].tokens, wide[3][1].tokens);
}

TEST(Generate, GreedyFollowsTheArgmaxOfTheWholeSequence) {
  auto all = requests(2, 1);
  Decoder decoder(tiny(), 3, 64);
  auto out = generate(decoder, all, sampling(0, 12), {{}, 0});
  for (size_t r = 0; r < 2; ++r) {
    auto tokens = all[r].prompt;
    for (int32_t token : out[r][0].tokens) {
      auto logits = forward_logits(*tiny(), nullptr, tokens);
      EXPECT_EQ(logits[-1].argmax().item<int64_t>(), token);
      tokens.push_back(token);
    }
    EXPECT_EQ(out[r][0].tokens.size(), 12u);
    EXPECT_FALSE(out[r][0].finished);
  }
}

TEST(Generate, LogProbabilitiesEqualTheTrainingGraphs) {
  auto all = requests(1, 2);
  Decoder decoder(tiny(), 4, 64);
  auto out = generate(decoder, all, sampling(1, 20), {{}, 0});
  for (const auto& rollout : out[0]) {
    auto tokens = all[0].prompt;
    std::vector<float> weights(tokens.size(), 0);
    tokens.insert(tokens.end(), rollout.tokens.begin(), rollout.tokens.end());
    weights.resize(tokens.size(), 1);
    PackedBatch batch;
    batch.append(tokens, weights);
    auto again = forward(*tiny(), nullptr, batch).log_probs;
    ASSERT_EQ(again.size(), rollout.log_probs.size());
    for (size_t t = 0; t < again.size(); ++t) EXPECT_NEAR(again[t], rollout.log_probs[t], 2e-4);
  }
}

TEST(Generate, StopTokensEndAnAnswerAndPaddingIsNeverDrawn) {
  auto all = requests(4, 8);
  Decoder decoder(tiny(), 6, 64);
  std::vector<int64_t> even;
  for (int64_t id = 0; id < 600; id += 2) even.push_back(id);
  auto out = generate(decoder, all, sampling(2, 40), {even, 600});
  int64_t finished = 0;
  for (const auto& group : out) {
    for (const auto& rollout : group) {
      for (size_t t = 0; t < rollout.tokens.size(); ++t) {
        EXPECT_LT(rollout.tokens[t], 600);
        bool last = t + 1 == rollout.tokens.size();
        if (rollout.tokens[t] % 2 == 0) {
          EXPECT_TRUE(last && rollout.finished);
        }
      }
      finished += rollout.finished;
    }
  }
  EXPECT_GT(finished, 20);
}

TEST(Generate, CapacityEndsAnAnswer) {
  auto all = requests(1, 1);
  Decoder decoder(tiny(), 2, 16);
  auto out = generate(decoder, all, sampling(1, 1000), {{}, 0});
  EXPECT_EQ(out[0][0].tokens.size(), 16u - all[0].prompt.size() + 1);
}

TEST(Generate, HandsOutEachAnswerWhenItIsComplete) {
  auto all = requests(4, 6);
  std::vector<int64_t> even;
  for (int64_t id = 0; id < 600; id += 2) even.push_back(id);
  Decoder decoder(tiny(), 5, 64);
  std::map<std::pair<size_t, int64_t>, Generated> seen;
  int64_t before_the_end = 0, done_then = 0;
  auto out = generate(
      decoder, all, sampling(2, 4), {even, 600},
      [&](int64_t done, int64_t total, int64_t) {
        EXPECT_EQ(done, static_cast<int64_t>(seen.size()));
        done_then = done;
        before_the_end += done < total && done > 0;
        return true;
      },
      [&](size_t request, int64_t sample, const Generated& generated) {
        EXPECT_TRUE(seen.emplace(std::pair(request, sample), generated).second) << "a second time";
      });
  EXPECT_GT(before_the_end, 0);
  EXPECT_EQ(done_then, 24);
  ASSERT_EQ(seen.size(), 24u);
  std::set<size_t> lengths;
  for (const auto& [which, generated] : seen) {
    const Generated& end = out[which.first][static_cast<size_t>(which.second)];
    EXPECT_EQ(generated.tokens, end.tokens);
    EXPECT_EQ(generated.log_probs, end.log_probs);
    EXPECT_EQ(generated.finished, end.finished);
    lengths.insert(end.tokens.size());
  }
  EXPECT_EQ(*lengths.begin(), 1u) << "one that never took a slot";
  EXPECT_EQ(*lengths.rbegin(), 4u) << "one that was cut off";
}

TEST(Generate, KnownAnswersAreNotDrawnAgainAndTheOthersStayTheSame) {
  auto all = requests(4, 6);
  Decoder decoder(tiny(), 5, 64);
  auto whole = generate(decoder, all, sampling(2, 4), {{}, 600});
  for (int every : {1, 2, 3}) {  // All of them, every second, all of some requests.
    auto rest = all;
    int64_t known = 0;
    for (size_t r = 0; r < rest.size(); ++r) {
      for (int64_t s = 0; s < rest[r].samples; ++s) {
        bool taken = every == 3 ? r % 2 == 0 : (static_cast<int64_t>(r) + s) % every == 0;
        if (taken) rest[r].known.emplace(s, whole[r][static_cast<size_t>(s)]), ++known;
      }
    }
    int64_t handed_out = 0, drawn = 0;
    Decoder other(tiny(), 3, 64);
    auto out = generate(
        other, rest, sampling(2, 4), {{}, 600},
        [&](int64_t done, int64_t total, int64_t tokens) {
          EXPECT_EQ(total, 24);
          EXPECT_GE(done, known);
          drawn = tokens;
          return true;
        },
        [&](size_t r, int64_t s, const Generated&) {
          EXPECT_EQ(rest[r].known.contains(s), handed_out < known) << "known ones come first";
          ++handed_out;
        });
    EXPECT_EQ(handed_out, 24);
    EXPECT_EQ(drawn, (24 - known) * 4);
    for (size_t r = 0; r < all.size(); ++r) {
      for (size_t s = 0; s < whole[r].size(); ++s) {
        EXPECT_EQ(out[r][s].tokens, whole[r][s].tokens) << every;
        EXPECT_EQ(out[r][s].log_probs, whole[r][s].log_probs) << every;
      }
    }
  }
}

TEST(Generate, StopsWhenAskedTo) {
  auto all = requests(3, 4);
  Decoder decoder(tiny(), 5, 64);
  auto out =
      generate(decoder, all, sampling(1, 50), {{}, 0}, [](int64_t, int64_t, int64_t tokens) { return tokens < 20; });
  size_t tokens = 0;
  for (const auto& group : out) {
    for (const auto& rollout : group) tokens += rollout.tokens.size();
  }
  EXPECT_GE(tokens, 20u);
  EXPECT_LT(tokens, 40u);
}

TEST(SampleToken, FrequenciesFollowTheSoftmax) {
  std::vector<float> logits = {1, 2, 0, -1, 3, 9};  // The last is padding: limit 5.
  SamplingConfig config = sampling(0.7, 1);
  std::map<int, int> count;
  constexpr int kDraws = 40000;
  for (int i = 0; i < kDraws; ++i) ++count[sample_token(logits.data(), 5, config, Rng(i)).token];
  double total = 0;
  for (int i = 0; i < 5; ++i) total += std::exp(logits[i] / 0.7);
  for (int i = 0; i < 5; ++i) {
    double p = std::exp(logits[i] / 0.7) / total;
    EXPECT_NEAR(count[i] / double{kDraws}, p, 4 * std::sqrt(p * (1 - p) / kDraws) + 1e-4) << i;
    SampledToken token = sample_token(logits.data(), 5, config, Rng(i));
    EXPECT_NEAR(token.log_prob, std::log(std::exp(logits[token.token] / 0.7) / total), 1e-5);
  }
  EXPECT_EQ(count.count(5), 0u);
}

TEST(SampleToken, TopKAndTopPCutTheTail) {
  std::vector<float> logits = {1, 2, 0, -1, 3};
  auto seen = [&](SamplingConfig config) {
    std::map<int, int> count;
    for (int i = 0; i < 4000; ++i) ++count[sample_token(logits.data(), 5, config, Rng(i)).token];
    std::vector<int> ids;
    for (auto& [id, n] : count) ids.push_back(id);
    return ids;
  };
  SamplingConfig config = sampling(1, 1);
  config.top_k = 2;
  EXPECT_EQ(seen(config), (std::vector<int>{1, 4}));
  config.top_k = 0;
  config.top_p = 0.6;  // softmax: 0.64 0.23 0.09 0.03 0.01, so the first token alone is enough.
  EXPECT_EQ(seen(config), (std::vector<int>{4}));
  config.top_p = 0.7;
  EXPECT_EQ(seen(config), (std::vector<int>{1, 4}));
  config.temperature = 0;
  EXPECT_EQ(seen(config), (std::vector<int>{4}));
}

}  // namespace
}  // namespace tritonrl::generate_test
