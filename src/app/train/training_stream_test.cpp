// SPDX-License-Identifier: Apache-2.0
#include "app/train/training_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files/files.h"
#include "base/files/line_file.h"

namespace tritonrl::training_stream_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Streaming : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / "tritonrl_training_stream_test";
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    data_.synth.seed = 5;
    data_.synth.repeats = 50;
  }
  void TearDown() override { fs::remove_all(folder_); }

  TrainingStream::Options options(int64_t examples) const {
    TrainingStream::Options out;
    out.examples = examples;
    out.of_update = 8;
    out.longest = 1 << 20;
    out.journal = folder_ / "taught.jsonl";
    return out;
  }
  // As many tokens as the solution has characters.
  static TrainExample encode(const Task& task) {
    return supervised_example(std::vector<int32_t>(task.solution.size(), 7), 1, task.id);
  }
  std::vector<std::string> ids(const TrainingStream::Options& options) const {
    TrainingStream stream(data_, {}, options, encode);
    std::vector<std::string> out;
    while (std::ssize(out) < options.examples - options.from_example) {
      for (const TrainExample& example : stream.next()) out.push_back(example.task_id);
    }
    left_out_ = stream.left_out();
    return out;
  }
  std::string error(const TrainingStream::Options& options) const {
    try {
      ids(options);
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  }

  fs::path folder_;
  DataConfig data_;
  mutable int64_t left_out_ = 0;
};

TEST_F(Streaming, GivesTheTasksThatTheSplitLeavesToTraining) {
  const std::vector<Task> tasks = first_training_tasks(data_, {}, 60);
  std::vector<std::string> expected;
  for (const Task& task : tasks) {
    EXPECT_TRUE(is_for_training(task, data_.split));
    expected.push_back(task.id);
  }
  EXPECT_EQ(ids(options(60)), expected);

  // What is wrong or too long is passed over.
  TrainingStream::Options some = options(40);
  some.wrong = {expected[3]};
  some.longest = static_cast<int64_t>(tasks[5].solution.size()) - 1;
  std::vector<std::string> kept;
  int64_t too_long = 0;
  for (const Task& task : tasks) {
    if (task.id == expected[3]) continue;
    bool fits = static_cast<int64_t>(task.solution.size()) <= some.longest;
    if (fits) kept.push_back(task.id);
    too_long += !fits;
  }
  ASSERT_GT(too_long, 0);
  some.examples = std::ssize(kept);
  EXPECT_EQ(ids(some), kept);
  EXPECT_LE(left_out_, too_long);
  EXPECT_GT(left_out_, 0);
}

TEST_F(Streaming, GoesOnBehindWhatWasTaughtWithTheSameExamples) {
  const std::vector<std::string> whole = ids(options(100));
  const std::string journal = read_file(options(100).journal);
  TrainingStream::Options rest = options(100);
  for (int64_t from : {8, 56, 96}) {  // What lies behind is made again, whatever the journal held.
    rest.from_example = from;
    EXPECT_EQ(ids(rest), std::vector<std::string>(whole.begin() + from, whole.end())) << from;
    EXPECT_EQ(read_file(rest.journal), journal) << from;
  }
  int64_t taught = 0;
  LineFile::open(rest.journal).for_each([&](int64_t, const Json& line) { taught += line.at("taught").get<bool>(); });
  EXPECT_EQ(taught, 100);
}

TEST_F(Streaming, SaysWhatIsMissing) {
  ids(options(16));
  TrainingStream::Options more = options(100);
  more.from_example = 24;
  EXPECT_THAT(error(more), HasSubstr("has 16 of the 24 examples that were taught"));
  TrainingStream failing(data_, {}, options(8),
                         [](const Task& task) -> TrainExample { throw environment_error("cannot encode " + task.id); });
  EXPECT_THROW(failing.next(), Error);
}

TEST_F(Streaming, EndsWhileExamplesAreStillMade) {
  TrainingStream stream(data_, {}, options(1'000'000), encode);
  EXPECT_EQ(stream.next().size(), 8u);
}

}  // namespace
}  // namespace tritonrl::training_stream_test
