// SPDX-License-Identifier: Apache-2.0
// FakeWorker: workers that lie, for tests. A fake fork server speaks (or garbles) the wire protocol from a thread; a
// fake pool answers jobs from a script. Neither starts a process.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "verify/sandbox/fork_server.h"

namespace tritonrl {

inline std::string frame_bytes(const Json& header, const std::string& payload = "") {
  std::string text = header.dump(), out(12, '\0');
  auto header_length = static_cast<uint32_t>(text.size());
  uint64_t payload_length = payload.size();
  std::memcpy(out.data(), &header_length, 4);
  std::memcpy(out.data() + 4, &payload_length, 8);
  return out + text + payload;
}

inline std::string blob_bytes(const Json& header, const std::string& area = "") {
  std::string text = header.dump(), out(4, '\0');
  auto length = static_cast<uint32_t>(text.size());
  std::memcpy(out.data(), &length, 4);
  return out + text + area;
}

// The fork server's side of one socket.
class FakeForkServerEnd {
 public:
  explicit FakeForkServerEnd(int fd) : fd_(fd) {}

  void say(const std::string& bytes) const {
    for (size_t at = 0; at < bytes.size();) {
      ssize_t n = send(fd_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
      if (n <= 0) return;
      at += static_cast<size_t>(n);
    }
  }
  void ready() const { say(frame_bytes({{"type", "ready"}, {"pid", 1}, {"missing", Json::array()}})); }
  void done(const Json& job, const std::string& result, const std::string& status = "exited", int code = 0) const {
    int64_t id = job.is_object() ? job.value("id", -1) : -1;  // The verifier may have said "quit" or hung up.
    say(frame_bytes(
        {{"type", "done"}, {"id", id}, {"status", status}, {"code", code}, {"seconds", 0.1}, {"stderr", ""}}, result));
  }
  // The next frame's header; null when the verifier hung up.
  Json hear(std::string* payload = nullptr) const {
    std::string lengths(12, '\0');
    if (!read_all(lengths)) return nullptr;
    uint32_t header_length = 0;
    uint64_t payload_length = 0;
    std::memcpy(&header_length, lengths.data(), 4);
    std::memcpy(&payload_length, lengths.data() + 4, 8);
    std::string text(header_length, '\0'), body(payload_length, '\0');
    if (!read_all(text) || !read_all(body)) return nullptr;
    if (payload) *payload = body;
    return Json::parse(text);
  }

 private:
  bool read_all(std::string& to) const {
    for (size_t at = 0; at < to.size();) {
      ssize_t n = ::read(fd_, to.data() + at, to.size() - at);
      if (n <= 0) return false;
      at += static_cast<size_t>(n);
    }
    return true;
  }
  int fd_;
};

// Starts fake fork servers: the n-th one started (of either kind) runs scripts[min(n, last)], then hangs up.
class FakeForkServers {
 public:
  using Script = std::function<void(const FakeForkServerEnd&)>;
  explicit FakeForkServers(std::vector<Script> scripts) : scripts_(std::move(scripts)) {}
  ~FakeForkServers() {
    for (auto& thread : threads_) thread.join();
  }

  Connection start() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
    std::lock_guard lock(mutex_);
    Script script = scripts_[std::min(started_++, scripts_.size() - 1)];
    threads_.emplace_back([script, fd = ends[1]] {
      script(FakeForkServerEnd(fd));
      ::close(fd);
    });
    return {ends[0], -1, -1};
  }
  size_t started() const { return started_; }

 private:
  std::vector<Script> scripts_;
  std::mutex mutex_;
  std::vector<std::thread> threads_;
  size_t started_ = 0;
};

// The kind of a job; "reference" for a `record` job of one.
inline std::string kind_of(const Job& job) {
  return job.kind == "record" && job.args.contains("reference") ? "reference" : job.kind;
}

// A pool whose answers come from a function. Counts jobs by kind.
class FakePool : public WorkerPool {
 public:
  using Answer = std::function<JobAnswer(const Job& job, const std::string& nonce)>;
  explicit FakePool(Answer answer) : answer_(std::move(answer)) {}

  JobAnswer run(ForkServerKind, Job job) override {
    std::string nonce = random_hex(8);
    {
      std::lock_guard lock(mutex_);
      jobs_.push_back(kind_of(job));
    }
    JobAnswer answer = answer_(job, nonce);
    if (answer.nonce.empty()) answer.nonce = nonce;
    return answer;
  }
  int64_t count(const std::string& kind) const {
    std::lock_guard lock(mutex_);
    return std::count(jobs_.begin(), jobs_.end(), kind);
  }

 private:
  Answer answer_;
  mutable std::mutex mutex_;
  std::vector<std::string> jobs_;
};

}  // namespace tritonrl
