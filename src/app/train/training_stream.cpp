// SPDX-License-Identifier: Apache-2.0
#include "app/train/training_stream.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/files/line_file.h"
#include "base/log.h"
#include "base/parallel.h"

namespace tritonrl {

namespace {

constexpr int64_t kChunk = 1024;     // Tasks made at a time.
constexpr int64_t kMostInVain = 64;  // Chunks in a row without an example.

}  // namespace

TrainingStream::TrainingStream(const DataConfig& data, Exclusion exclusion, Options options, Encode encode)
    : data_(data), exclusion_(std::move(exclusion)), options_(std::move(options)), encode_(std::move(encode)) {
  CHECK(options_.from_example <= options_.examples && options_.of_update > 0) << "no such examples";
  given_ = options_.from_example;
  maker_ = std::thread([this] {
    try {
      make();
    } catch (...) {
      std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
    }
    changed_.notify_all();
  });
}

TrainingStream::~TrainingStream() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  maker_.join();
}

std::vector<TrainExample> TrainingStream::next() {
  auto wanted = static_cast<size_t>(std::min(options_.of_update, options_.examples - given_));
  CHECK(wanted > 0) << "all " << options_.examples << " examples were given";
  double start = now_s();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return failure_ || ready_.size() >= wanted; });
  waited_s_ += now_s() - start;
  if (ready_.size() < wanted) std::rethrow_exception(failure_);
  std::vector<TrainExample> out(std::move_iterator(ready_.begin()),
                                std::move_iterator(ready_.begin() + static_cast<std::ptrdiff_t>(wanted)));
  ready_.erase(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(wanted));
  given_ += static_cast<int64_t>(wanted);
  lock.unlock();
  changed_.notify_all();
  return out;
}

int64_t TrainingStream::left_out() const {
  std::lock_guard lock(mutex_);
  return left_out_;
}

void TrainingStream::go_past(graphs::GraphStream& stream) {
  if (options_.from_example == 0) {
    std::filesystem::remove(options_.journal);
    return;
  }
  LineFile journal = LineFile::open(options_.journal);
  int64_t taught = 0, lines = 0;
  journal.for_each([&](int64_t, const Json& line) {
    if (taught == options_.from_example) return;
    stream.skip(line.at("graph").get<std::string>(), line.at("level").get<int64_t>());
    taught += line.at("taught").get<bool>();
    ++lines;
  });
  if (taught < options_.from_example) {
    throw environment_error(cat("has ", taught, " of the ", options_.from_example, " examples that were taught"),
                            options_.journal.string(), "the run directory is not whole: begin another run");
  }
  journal.keep(lines);
}

void TrainingStream::make() {
  graphs::GraphStream stream(data_.synth, exclusion_);
  go_past(stream);
  LineFile journal = LineFile::open(options_.journal);
  const auto threads = static_cast<int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  int64_t left = options_.examples - options_.from_example;
  for (int64_t in_vain = 0; left > 0; ++in_vain) {
    if (in_vain == kMostInVain) {
      throw usage_error(cat("no example among ", kMostInVain * kChunk, " tasks in a row"), "data.train.stream",
                        "a larger sft.max_tokens, a smaller data.split.rl_share and heldout_share, or other operators");
    }
    const std::vector<Task> tasks = stream.next(std::min<int64_t>(kChunk, std::max<int64_t>(64, 2 * left)));
    std::vector<TrainExample> examples(tasks.size());
    parallel_for(tasks.size(), threads, [&](size_t i) {
      if (is_for_training(tasks[i], data_.split) && !options_.wrong.contains(tasks[i].id))
        examples[i] = encode_(tasks[i]);
    });
    std::string lines;
    std::vector<TrainExample> chosen;
    int64_t too_long = 0;
    for (size_t i = 0; i < tasks.size() && left > 0; ++i) {
      bool any = !examples[i].tokens.empty();
      bool taught = any && static_cast<int64_t>(examples[i].tokens.size()) <= options_.longest;
      too_long += any && !taught;
      lines += Json({{"graph", tasks[i].graph_hash}, {"level", tasks[i].level}, {"taught", taught}}).dump() + "\n";
      if (!taught) continue;
      chosen.push_back(std::move(examples[i]));
      --left;
    }
    journal.write_lines(lines);
    if (!chosen.empty()) in_vain = 0;
    std::unique_lock lock(mutex_);
    left_out_ += too_long;
    std::move(chosen.begin(), chosen.end(), std::back_inserter(ready_));
    changed_.notify_all();
    changed_.wait(lock, [&] { return stopped_ || std::ssize(ready_) < kAhead; });
    if (stopped_) return;
  }
}

std::vector<Task> first_training_tasks(const DataConfig& data, const Exclusion& exclusion, int64_t count) {
  graphs::GraphStream stream(data.synth, exclusion);
  std::vector<Task> out;
  while (std::ssize(out) < count) {
    for (Task& task : stream.next(kChunk)) {
      if (std::ssize(out) < count && is_for_training(task, data.split)) out.push_back(std::move(task));
    }
  }
  return out;
}

}  // namespace tritonrl
