// SPDX-License-Identifier: Apache-2.0
// TrainingStream: supervised examples straight from the synthesiser, made while the model trains (data.train.stream).
//
// They are those tasks of the stream that data.split leaves to training and that have a solution, in order; what is
// known to be wrong or is too long is passed over. A journal keeps a short line a task (graph, level, whether it was
// taught), so that training which continues goes past what was taught without making it again, and gets the examples
// that it would have got without a stop. Thread rule: one thread owns it; it has one of its own that makes examples
// ahead, at most kAhead of them.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <filesystem>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "data/data_config.h"
#include "data/tasks/exclusion.h"
#include "train/train_example.h"

namespace tritonrl {

class TrainingStream {
 public:
  static constexpr int64_t kAhead = 4096;  // Examples.

  struct Options {
    int64_t examples = 0;           // In all.
    int64_t of_update = 1;          // Examples that next() gives; the last ones may be fewer.
    int64_t from_example = 0;       // So many were taught before.
    int64_t longest = 0;            // Tokens.
    std::set<std::string> wrong;    // Tasks whose solution the verifier rejected.
    std::filesystem::path journal;  // Of the examples before, where there are some.
  };
  // Called by several threads at a time.
  using Encode = std::function<TrainExample(const Task&)>;

  TrainingStream(const DataConfig& data, Exclusion exclusion, Options options, Encode encode);
  ~TrainingStream();
  TrainingStream(const TrainingStream&) = delete;
  TrainingStream& operator=(const TrainingStream&) = delete;

  // The examples of the next update; blocks. REQUIRES: not all were given. Throws what making them threw: Error (usage)
  // when the stream has no more, Error (environment) for a journal that lacks the examples before.
  std::vector<TrainExample> next();
  // Seconds that next() waited: what the data side costs.
  double waited_s() const { return waited_s_; }
  // Too long so far.
  int64_t left_out() const;

 private:
  void make();
  // Goes past what the journal has; cuts what lies behind the examples before.
  void go_past(graphs::GraphStream& stream);

  const DataConfig data_;
  const Exclusion exclusion_;
  const Options options_;
  const Encode encode_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<TrainExample> ready_;
  int64_t given_ = 0, left_out_ = 0;
  bool stopped_ = false;
  std::exception_ptr failure_;
  double waited_s_ = 0;
  std::thread maker_;
};

// The first `count` tasks that such a stream teaches.
std::vector<Task> first_training_tasks(const DataConfig& data, const Exclusion& exclusion, int64_t count);

}  // namespace tritonrl
