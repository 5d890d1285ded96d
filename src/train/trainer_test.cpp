// SPDX-License-Identifier: Apache-2.0
// What the trainer refuses to continue with.
#include "train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/process/build_paths.h"
#include "support/tiny_model.h"

namespace tritonrl::trainer_test {
namespace {

using testing::HasSubstr;

class Trainer : public testing::Test {
 protected:
  static Policy open(int64_t window) {
    std::string folder = testing::TempDir() + "/trainer_test_model";
    write_tiny_model(folder, window);
    PolicyConfig config;
    config.model = folder;
    config.device = "cpu";
    config.dtype = ComputeType::kFp32;
    Policy policy = Policy::open(config, PromptTemplate::load(source_dir() + "/prompts/triton.txt"));
    policy.set_adapter(LoraAdapter::create(policy.weights(), {}, Rng(1)));
    return policy;
  }
  static std::vector<TrainExample> examples(int64_t length = 12) {
    std::vector<TrainExample> out;
    for (const char* id : {"one", "two", "three"}) {
      std::vector<int32_t> tokens;
      for (int64_t t = 0; t < length; ++t) tokens.push_back(static_cast<int32_t>(5 + (t * 7 + id[0]) % 300));
      out.push_back(supervised_example(std::move(tokens), 4, id));
    }
    return out;
  }
  static std::string error_of(Policy& policy, const TrainConfig& config) {
    try {
      train(policy, examples(), config, Rng(2));
    } catch (const Error& e) {
      EXPECT_EQ(e.exit_code(), 3);
      return e.what();
    }
    return "no error";
  }
};

// The first parameter's NaN goes through an attention whose exp() takes it for a number: there the gradient tells.
TEST_F(Trainer, AWeightThatIsNoNumberStopsTheFirstUpdateAndNamesItsTasks) {
  Policy policy = open(256);
  TrainConfig config;
  config.batch_size = 3;
  size_t count = policy.adapter().parameters().size();
  for (size_t at : {size_t{0}, count - 1}) {
    policy.set_adapter(LoraAdapter::create(policy.weights(), {}, Rng(1)));
    policy.adapter().parameters()[at].view({-1})[5] = NAN;
    std::string said = error_of(policy, config);
    EXPECT_THAT(said, HasSubstr("of update 1 is not finite")) << at;
    EXPECT_THAT(said, HasSubstr("tasks one, three, two")) << at;
    EXPECT_THAT(said, HasSubstr("lower learning rate")) << at;
  }
}

TEST_F(Trainer, ALearningRateThatIsMuchTooHighStopsTheUpdateBehindIt) {
  Policy policy = open(256);
  TrainConfig config;
  config.batch_size = 1;
  config.optimizer.lr = 1e30;
  config.optimizer.warmup = 0;
  EXPECT_THAT(error_of(policy, config), HasSubstr("of update 2 is not finite"));
}

// Nothing comes after the last update that would notice, but for the checkpoint.
TEST_F(Trainer, TheLastUpdateMustLeaveNumbersToo) {
  Policy policy = open(256);
  TrainConfig config;
  config.batch_size = 3;
  config.optimizer.lr = 1e30;
  config.optimizer.warmup = 0;
  config.optimizer.weight_decay = 3e8;
  policy.adapter().parameters()[0].fill_(30);
  EXPECT_THAT(error_of(policy, config), HasSubstr("the adapter of update 1 is not finite"));
}

// A loss that is a number with a gradient whose norm is none.
TEST_F(Trainer, AGradientThatIsNotFiniteStopsToo) {
  Policy policy = open(256);
  TrainConfig config;
  config.batch_size = 3;
  LoraConfig none;
  none.dropout = 0;
  policy.set_adapter(LoraAdapter::create(policy.weights(), none, Rng(1)));
  policy.adapter().parameters()[0].fill_(1e30);  // A is large, B is 0: the loss does not see A, B's gradient does.
  EXPECT_THAT(error_of(policy, config), HasSubstr("the gradient of update 1 is not finite"));
}

TEST_F(Trainer, EveryWeightCanBeTrained) {
  Policy policy = open(256);
  LoraConfig full;
  full.full = true;
  policy.set_adapter(LoraAdapter::create(policy.weights(), full, Rng(1)));
  std::vector<at::Tensor> before;
  for (const at::Tensor& p : policy.adapter().parameters()) before.push_back(p.clone());
  auto base = policy.weights().embedding_VH.clone();
  TrainConfig config;
  config.batch_size = 3;
  config.epochs = 20;
  config.optimizer.lr = 1e-3;
  std::vector<int32_t> prompt = {5, 6, 7};
  auto answer = [&] {
    SamplingConfig greedy;
    greedy.temperature = 0;
    greedy.max_new_tokens = 3;
    GenerateRequest request{prompt, 1, Rng(1)};
    return policy.snapshot().answer({&request, 1}, greedy)[0][0];
  };
  auto first = answer().log_probs;
  TrainSummary summary = train(policy, examples(), config, Rng(2));
  EXPECT_LT(summary.last_loss, 0.5 * summary.first_loss) << summary.first_loss;
  auto after = policy.adapter().parameters();
  for (size_t i = 0; i < before.size(); ++i) EXPECT_FALSE(at::equal(after[i], before[i])) << i;
  EXPECT_TRUE(at::equal(policy.weights().embedding_VH, base)) << "the base stays";
  EXPECT_NE(answer().log_probs, first) << "sampling follows";
}

TEST_F(Trainer, UpdatesAreAboutEquallyLarge) {
  Policy policy = open(256);
  std::vector<TrainExample> seven;
  for (int i = 0; i < 7; ++i) seven.push_back(examples()[static_cast<size_t>(i % 3)]);
  TrainConfig config;
  config.batch_size = 1;
  config.updates = 3;
  config.epochs = 2;
  std::vector<int64_t> sizes;
  int64_t parts = 0;
  TrainHooks hooks = [&](const UpdateReport& r) {
    EXPECT_EQ(r.steps, 6);
    sizes.push_back(r.tokens / 12);
    return true;
  };
  hooks.on_part = [&] { ++parts; };
  config.micro_batch_tokens = 12;  // An example each.
  train(policy, seven, config, Rng(2), hooks);
  EXPECT_EQ(sizes, (std::vector<int64_t>{2, 2, 3, 2, 2, 3}));
  EXPECT_EQ(parts, 14);
  config.updates = 9;  // More than there are examples.
  config.epochs = 1;
  EXPECT_EQ(train(policy, seven, config, Rng(2)).steps, 7);
}

TEST_F(Trainer, StreamedUpdatesGoOnBehindThoseThatAreDone) {
  const auto all = examples();
  TrainConfig config;
  config.optimizer.lr = 1e-2;
  auto trained = [&](std::vector<int64_t> stops) {
    Policy policy = open(256);
    AdamW optimizer(config.optimizer, policy.adapter().parameters());
    size_t at = 0;
    int64_t from = 0, asked = 0;
    for (int64_t stop : stops) {
      auto next = [&] {
        ++asked;
        return std::vector<TrainExample>{all[at++ % all.size()], all[at % all.size()]};
      };
      TrainHooks until = [&](const UpdateReport& r) { return r.step < stop; };
      TrainSummary summary = train_streamed(policy, 6, next, config, Rng(2), until, &optimizer, from);
      EXPECT_EQ(summary.steps, stop);
      EXPECT_EQ(summary.examples, 2 * (stop - from));
      from = stop;
    }
    EXPECT_EQ(asked, 6);
    return policy.adapter().parameters().back().clone();
  };
  at::Tensor whole = trained({6});
  EXPECT_TRUE(at::equal(whole, trained({2, 6})));
  EXPECT_GT(whole.abs().max().item<double>(), 0);
}

TEST_F(Trainer, ExamplesBeyondTheModelsWindowAreLeftOut) {
  Policy policy = open(16);
  auto mixed = examples(12);
  mixed.push_back(examples(17)[0]);
  TrainConfig config;
  TrainSummary summary = train(policy, mixed, config, Rng(2));
  EXPECT_EQ(summary.left_out, 1);
  EXPECT_EQ(summary.examples, 3);
  EXPECT_TRUE(std::isfinite(summary.last_loss));
}

}  // namespace
}  // namespace tritonrl::trainer_test
