// SPDX-License-Identifier: Apache-2.0
// VerifyStream: candidates one by one into a verifier's workers, verdicts out as they come.
//
//   auto stream = verifier.stream(on_verdict, /*spare=*/1);
//   stream->submit(tag, candidate);  ...                  // never waits for a verdict
//   stream->finish();                                      // waits for all of them
//
// Candidates with the same task and text are verified once, whenever they come: `on_verdict` gets a copy with its own
// id for each. What verdict a candidate gets does not depend on the order or on what else is submitted. Where the
// memory of others left the verifier too little (Rule::kVerifierMemory), it is asked once more, when all else is done
// and one at a time.
// Thread rule: submit and finish from one thread. `on_verdict` is called from the workers' threads and from submit, one
// call at a time; it must not call the stream.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "verify/stages.h"

namespace tritonrl {

class VerifyStream {
 public:
  using Verify = std::function<Verdict(const Candidate& candidate)>;  // Any number at a time; must not throw.
  using OnVerdict = std::function<void(size_t tag, Verdict verdict)>;

  // `workers` candidates at a time; until finish() `spare` fewer, but at least one, for whoever makes the candidates.
  VerifyStream(Verify verify, OnVerdict on_verdict, int64_t workers, int64_t spare = 0);
  // Without finish(): waits for the candidates under way and leaves the others without a verdict.
  ~VerifyStream();
  VerifyStream(const VerifyStream&) = delete;
  VerifyStream& operator=(const VerifyStream&) = delete;

  // The candidate's verdict will be known by `tag`. Throws what on_verdict threw.
  void submit(size_t tag, std::shared_ptr<const Candidate> candidate);
  void submit(size_t tag, Candidate candidate) { submit(tag, std::make_shared<const Candidate>(std::move(candidate))); }
  // No more will come. Blocks until every candidate has its verdict; when asked to stop (base/process/interrupt.h),
  // finishes those under way and throws Interrupted if others are left. Throws what on_verdict threw.
  void finish();

 private:
  // Candidates that are the same.
  struct Group {
    std::shared_ptr<const Candidate> candidate;           // The first.
    std::vector<std::pair<size_t, std::string>> waiting;  // Tags and ids.
    std::shared_ptr<const Verdict> verdict;               // Null = not there yet.
  };
  void work();
  void start_workers(int64_t limit);
  void deliver(const Verdict& verdict, size_t tag, const std::string& id);
  void close();

  const Verify verify_;
  const OnVerdict on_verdict_;
  const int64_t workers_, while_open_;
  std::mutex mutex_;  // Guards all below but threads_.
  std::condition_variable wake_;
  std::map<std::string, std::unique_ptr<Group>> groups_;  // By identity.
  std::deque<Group*> queue_;
  std::deque<Group*> again_;  // For which the verifier had too little memory.
  int64_t idle_ = 0;          // Workers that wait for a candidate.
  int64_t under_way_ = 0;     // Workers that verify one.
  int64_t undone_ = 0;        // Groups without a verdict.
  bool closed_ = false;
  std::exception_ptr problem_;
  std::vector<std::thread> threads_;
};

}  // namespace tritonrl
