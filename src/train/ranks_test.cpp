// SPDX-License-Identifier: Apache-2.0
// Several ranks are several threads here: each has its own connections and its own policy.
#include "train/ranks.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/process/build_paths.h"
#include "base/text.h"
#include "support/tiny_model.h"
#include "train/trainer.h"

namespace tritonrl::ranks_test {
namespace {

using testing::HasSubstr;

// One that nobody listens on just now.
int64_t free_port() {
  int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  bool bound = ::bind(fd, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
               ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  ::close(fd);
  EXPECT_TRUE(bound);
  return ntohs(address.sin_port);
}

// Runs `body` as so many ranks; returns what each threw ("" = nothing).
std::vector<std::string> as_ranks(int64_t size, const std::function<void(Ranks&)>& body) {
  Ranks::Place place;
  place.size = size;
  place.address = "127.0.0.1";
  place.port = free_port();
  place.prefix = "test";
  std::vector<std::string> said(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int64_t r = 0; r < size; ++r) {
    threads.emplace_back([&, r, place]() mutable {
      place.rank = place.local = r;
      try {
        auto ranks = Ranks::join(place, std::chrono::seconds(60));
        body(*ranks);
      } catch (const std::exception& e) {
        said[static_cast<size_t>(r)] = e.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return said;
}

void run_as_ranks(int64_t size, const std::function<void(Ranks&)>& body) {
  for (const std::string& said : as_ranks(size, body)) EXPECT_EQ(said, "");
}

TEST(Ranks, SumsAreThoseOfAllAndTheSameBitsEverywhere) {
  for (int64_t size : {2, 4}) {
    std::vector<std::vector<at::Tensor>> sums(static_cast<size_t>(size));
    run_as_ranks(size, [&](Ranks& ranks) {
      std::vector<at::Tensor> mine;  // Of more than a block together, and one that is larger than a block.
      for (int64_t n : {int64_t{1}, int64_t{3'000'001}, int64_t{20'000'000}, int64_t{7}}) {
        mine.push_back(at::arange(n, at::kFloat).remainder(1000).mul(0.37 * static_cast<double>(ranks.rank() + 1)));
      }
      ranks.sum(mine);
      sums[static_cast<size_t>(ranks.rank())] = mine;
    });
    double times = 0.37 * static_cast<double>(size * (size + 1) / 2);
    for (size_t i = 0; i < sums[0].size(); ++i) {
      auto want = at::arange(sums[0][i].numel(), at::kFloat).remainder(1000).mul(times);
      EXPECT_LT((sums[0][i] - want).abs().max().item<float>(), 1e-3) << i;
      for (const auto& other : sums) EXPECT_TRUE(at::equal(other[i], sums[0][i])) << i;
    }
  }
}

TEST(Ranks, GatherWhatEachHasInTheirOrder) {
  run_as_ranks(3, [](Ranks& ranks) {
    auto text = [](int64_t rank) {
      return std::string(static_cast<size_t>(rank * 5000), static_cast<char>('a' + rank));
    };
    auto all = ranks.gather(text(ranks.rank()));
    ASSERT_EQ(all.size(), 3u);
    for (int64_t r = 0; r < 3; ++r) EXPECT_EQ(all[static_cast<size_t>(r)], text(r));
    EXPECT_TRUE(ranks.any(ranks.rank() == 1));
    EXPECT_FALSE(ranks.any(false));
    EXPECT_EQ(ranks.gather(""), std::vector<std::string>(3));
    ranks.wait_for_all();
  });
}

TEST(Ranks, OneThatDiffersIsNamedOnAll) {
  auto said = as_ranks(3, [](Ranks& ranks) {
    ranks.require_same("config", "as agreed");
    ranks.require_same("model", ranks.rank() == 2 ? "sha-1" : "sha-0", "copy it to all machines");
  });
  for (const std::string& one : said) {
    EXPECT_THAT(one, HasSubstr("rank 2 has another model than rank 0"));
    EXPECT_THAT(one, HasSubstr("copy it to all machines"));
  }
}

TEST(Ranks, OneThatLeavesIsNoticedByTheOthers) {
  auto said = as_ranks(3, [](Ranks& ranks) {
    ranks.wait_for_all();
    if (ranks.rank() == 1) return;
    for (int i = 0; i < 100; ++i) ranks.any(false);
  });
  EXPECT_EQ(said[1], "");
  for (size_t r : {0u, 2u}) {
    EXPECT_THAT(said[r], HasSubstr(cat("rank ", r, " lost the others while agreeing whether to go on")));
  }
}

TEST(Ranks, WhoIsNotThereInTimeIsWaitedForNoLonger) {
  Ranks::Place place{0, 2, 0, 2, "127.0.0.1", free_port(), false, "test"};
  try {
    Ranks::join(place, std::chrono::seconds(1));
    FAIL() << "met nobody";
  } catch (const Error& e) {
    EXPECT_EQ(e.exit_code(), 3);
    EXPECT_THAT(e.what(), HasSubstr("rank 0 of 2 did not meet the others"));
    EXPECT_THAT(e.what(), HasSubstr(cat("127.0.0.1:", place.port)));
  }
}

class Environment : public testing::Test {
 protected:
  ~Environment() override { set({}); }
  static void set(const std::map<std::string, std::string>& values) {
    for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "SLURM_PROCID",
                             "SLURM_LOCALID", "SLURM_STEP_NUM_TASKS", "LOCAL_WORLD_SIZE", "SLURM_NTASKS_PER_NODE",
                             "TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_RESTART_COUNT"}) {
      ::unsetenv(name);
    }
    for (const auto& [name, value] : values) ::setenv(name.c_str(), value.c_str(), 1);
  }
  static std::string refusal(const std::map<std::string, std::string>& values) {
    set(values);
    try {
      Ranks::place();
    } catch (const Error& e) {
      EXPECT_EQ(e.exit_code(), 2);
      return e.what();
    }
    return "no error";
  }
};

TEST_F(Environment, SaysWhoIsWho) {
  set({});
  EXPECT_EQ(Ranks::place().size, 1);
  set({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "2"}});
  EXPECT_EQ(Ranks::place().size, 1) << "torchrun's word counts where both are there";
  set({{"RANK", "5"},
       {"WORLD_SIZE", "8"},
       {"LOCAL_RANK", "1"},
       {"MASTER_ADDR", "node7"},
       {"MASTER_PORT", "29501"},
       {"TORCHELASTIC_USE_AGENT_STORE", "True"},
       {"TORCHELASTIC_RESTART_COUNT", "2"}});
  Ranks::Place place = Ranks::place();
  EXPECT_EQ(std::tuple(place.rank, place.size, place.local, place.port), std::tuple(5, 8, 1, 29501));
  EXPECT_EQ(place.address, "node7");
  EXPECT_TRUE(place.agent);
  EXPECT_EQ(place.prefix, "tritonrl/2");
  set({{"SLURM_PROCID", "3"},
       {"SLURM_STEP_NUM_TASKS", "4"},
       {"SLURM_LOCALID", "1"},
       {"MASTER_ADDR", "a"},
       {"MASTER_PORT", "1"}});
  place = Ranks::place();
  EXPECT_EQ(std::tuple(place.rank, place.size, place.local, place.agent), std::tuple(3, 4, 1, false));
  set({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}});
  EXPECT_EQ(Ranks::place().size, 1) << "a batch script's own shell is no step";
}

TEST_F(Environment, HalfOfItIsRefused) {
  std::map<std::string, std::string> whole = {
      {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "29500"}};
  auto but = [&](const std::string& name, const std::string& value) {
    auto changed = whole;
    if (value.empty()) changed.erase(name);
    if (!value.empty()) changed[name] = value;
    return refusal(changed);
  };
  EXPECT_THAT(but("MASTER_ADDR", ""), HasSubstr("WORLD_SIZE=2 without MASTER_ADDR"));
  EXPECT_THAT(but("MASTER_PORT", ""), HasSubstr("MASTER_PORT is not set"));
  EXPECT_THAT(but("RANK", ""), HasSubstr("RANK is not set"));
  EXPECT_THAT(but("WORLD_SIZE", ""), HasSubstr("RANK is set and WORLD_SIZE is not"));
  EXPECT_THAT(but("RANK", "2"), HasSubstr("RANK=2 is not a number from 0 to 1"));
  EXPECT_THAT(but("WORLD_SIZE", "two"), HasSubstr("WORLD_SIZE=two is not a number"));
  EXPECT_THAT(but("MASTER_PORT", "70000"), HasSubstr("from 1 to 65535"));
  EXPECT_THAT(but("RANK", "2"), HasSubstr("torchrun --no-python"));
}

class TrainedTogether : public testing::Test {
 protected:
  static Policy open(bool full, double dropout) {
    static const std::string folder = [] {
      std::string path = testing::TempDir() + "/ranks_test_model";
      write_tiny_model(path, 256);
      return path;
    }();
    PolicyConfig config;
    config.model = folder;
    config.device = "cpu";
    config.dtype = ComputeType::kFp32;
    Policy policy = Policy::open(config, PromptTemplate::load(source_dir() + "/prompts/triton.txt"));
    LoraConfig lora;
    lora.full = full;
    lora.dropout = dropout;
    policy.set_adapter(LoraAdapter::create(policy.weights(), lora, Rng(1)));
    return policy;
  }
  // Of all lengths, so that parts differ in size.
  static std::vector<TrainExample> examples(bool with_advantages) {
    std::vector<TrainExample> out;
    Rng rng(3);
    for (int64_t i = 0; i < 11; ++i) {
      std::vector<int32_t> tokens;
      for (int64_t t = 0; t < 9 + 5 * (i % 4); ++t) tokens.push_back(static_cast<int32_t>(5 + rng.uniform() * 300));
      auto length = tokens.size();
      TrainExample one = supervised_example(std::move(tokens), 4, cat("task ", i));
      if (with_advantages) {
        one.sampled_log_probs.assign(length - 4, -5.5f - 0.1f * static_cast<float>(i % 3));
        std::fill(one.weights.begin() + 4, one.weights.end(), static_cast<float>(i % 3) - 1);
      }
      out.push_back(std::move(one));
    }
    return out;
  }
  struct Outcome {
    std::vector<double> losses, norms;
    std::vector<int64_t> tokens;
    std::vector<at::Tensor> parameters;
    PolicyLossMetrics policy;
  };
  static Outcome train_it(Ranks* ranks, bool full, bool with_advantages, double dropout) {
    Policy policy = open(full, dropout);
    TrainConfig config;
    config.batch_size = 5;
    config.epochs = 2;
    config.micro_batch_tokens = 24;
    config.optimizer.lr = 1e-3;
    Outcome out;
    TrainHooks hooks = [&](const UpdateReport& r) {
      out.losses.push_back(r.loss);
      out.norms.push_back(r.grad_norm);
      out.tokens.push_back(r.tokens);
      return true;
    };
    hooks.ranks = ranks;
    PolicyUpdate how;
    how.longest_answer = 40;
    how.loss.kl = 0.01;
    how.loss.correction = Correction::kToken;
    auto given = examples(with_advantages);
    out.policy = (with_advantages ? train_policy(policy, given, config, how, Rng(2), hooks)
                                  : train(policy, given, config, Rng(2), hooks))
                     .policy;
    for (const at::Tensor& p : policy.adapter().parameters()) out.parameters.push_back(p.clone());
    return out;
  }
};

TEST_F(TrainedTogether, RanksTakeTheStepsOfOne) {
  struct Case {
    bool full, with_advantages;
    int64_t size;
  };
  // Four ranks cut these small updates more finely, and an adapter's dropout goes by the cut.
  for (const Case& c : {Case{false, false, 2}, Case{false, false, 4}, Case{true, false, 2}, Case{false, true, 2},
                        Case{true, true, 4}}) {
    SCOPED_TRACE(cat("full ", c.full, ", advantages ", c.with_advantages, ", ranks ", c.size));
    double dropout = c.size == 2 ? 0.05 : 0;
    Outcome alone = train_it(nullptr, c.full, c.with_advantages, dropout);
    std::vector<Outcome> together(static_cast<size_t>(c.size));
    run_as_ranks(c.size, [&](Ranks& ranks) {
      together[static_cast<size_t>(ranks.rank())] = train_it(&ranks, c.full, c.with_advantages, dropout);
    });
    const Outcome& first = together[0];
    ASSERT_EQ(first.losses.size(), alone.losses.size());
    EXPECT_EQ(first.tokens, alone.tokens);
    for (size_t u = 0; u < alone.losses.size(); ++u) {
      EXPECT_NEAR(first.losses[u], alone.losses[u], 1e-5 * std::abs(alone.losses[u]) + 1e-6) << u;
      EXPECT_NEAR(first.norms[u], alone.norms[u], 1e-4 * alone.norms[u]) << u;
    }
    EXPECT_EQ(first.policy.answers, alone.policy.answers);
    EXPECT_NEAR(first.policy.reference_kl, alone.policy.reference_kl, 1e-5 * alone.policy.reference_kl);
    for (size_t i = 0; i < alone.parameters.size(); ++i) {
      double scale = alone.parameters[i].abs().max().item<float>();
      EXPECT_LT((first.parameters[i] - alone.parameters[i]).abs().max().item<float>(), 2e-3 * scale + 1e-6) << i;
    }
    for (const Outcome& other : together) {  // Bit for bit, or they would drift apart.
      EXPECT_EQ(other.losses, first.losses);
      for (size_t i = 0; i < first.parameters.size(); ++i) {
        ASSERT_TRUE(at::equal(other.parameters[i], first.parameters[i])) << i;
      }
    }
  }
}

}  // namespace
}  // namespace tritonrl::ranks_test
