// SPDX-License-Identifier: Apache-2.0
#include "verify/verify_stream.h"

#include <algorithm>

#include "base/check.h"
#include "base/files/json.h"
#include "base/files/secure_hash.h"
#include "base/process/interrupt.h"

namespace tritonrl {
namespace {

std::string identity(const Candidate& candidate) {
  return secure_hash(json_line({candidate.task.id, candidate.task.source, candidate.task.tiny, candidate.task.larger,
                                candidate.is_code, candidate.timed, secure_hash(candidate.text)}));
}

}  // namespace

VerifyStream::VerifyStream(Verify verify, OnVerdict on_verdict, int64_t workers, int64_t spare)
    : verify_(std::move(verify)),
      on_verdict_(std::move(on_verdict)),
      workers_(std::max<int64_t>(workers, 1)),
      while_open_(std::max<int64_t>(workers - spare, 1)) {}

VerifyStream::~VerifyStream() {
  {
    std::lock_guard lock(mutex_);
    queue_.clear();
    again_.clear();
  }
  close();
}

void VerifyStream::submit(size_t tag, std::shared_ptr<const Candidate> candidate) {
  std::string key = identity(*candidate);
  std::unique_lock lock(mutex_);
  CHECK(!closed_) << "a candidate after finish()";
  if (problem_) std::rethrow_exception(problem_);
  auto [it, fresh] = groups_.try_emplace(std::move(key));
  if (!fresh && it->second->verdict) {
    deliver(*it->second->verdict, tag, candidate->id);
    return;
  }
  if (fresh) it->second = std::make_unique<Group>();
  Group& group = *it->second;
  group.waiting.emplace_back(tag, candidate->id);
  if (!fresh) return;
  group.candidate = std::move(candidate);
  queue_.push_back(&group);
  ++undone_;
  start_workers(while_open_);
  lock.unlock();
  wake_.notify_one();
}

void VerifyStream::finish() {
  {
    std::lock_guard lock(mutex_);
    start_workers(workers_);
  }
  close();
  if (problem_) std::rethrow_exception(problem_);
  if (undone_ > 0) throw Interrupted();
}

void VerifyStream::close() {
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

// REQUIRES: the lock.
void VerifyStream::start_workers(int64_t limit) {
  auto queued = static_cast<int64_t>(queue_.size());
  for (int64_t missing = queued - idle_; missing > 0 && static_cast<int64_t>(threads_.size()) < limit; --missing) {
    threads_.emplace_back([this] { work(); });
  }
}

// REQUIRES: the lock.
void VerifyStream::deliver(const Verdict& verdict, size_t tag, const std::string& id) {
  Verdict copy = verdict;
  copy.candidate_id = id;
  on_verdict_(tag, std::move(copy));
}

void VerifyStream::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    wake_.wait(lock, [&] { return closed_ || !queue_.empty(); });
    --idle_;
    if (problem_ || interrupted()) return;
    bool last = queue_.empty();  // And closed. Who is under way still comes here behind us.
    if (last && (again_.empty() || under_way_ > 0)) return;
    std::deque<Group*>& from = last ? again_ : queue_;
    Group& group = *from.front();
    from.pop_front();
    ++under_way_;
    lock.unlock();
    auto verdict = std::make_shared<const Verdict>(verify_(*group.candidate));
    lock.lock();
    --under_way_;
    if (problem_) return;
    if (verdict->finding().rule() == Rule::kVerifierMemory && !last) {
      again_.push_back(&group);
      continue;
    }
    try {
      for (const auto& [tag, id] : group.waiting) deliver(*verdict, tag, id);
    } catch (...) {  // Carried over to the submitter's thread.
      problem_ = std::current_exception();
      return;
    }
    --undone_;
    group.waiting.clear();
    group.candidate.reset();
    if (!closed_) group.verdict = std::move(verdict);  // Others like it may come.
  }
}

}  // namespace tritonrl
