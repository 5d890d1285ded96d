// SPDX-License-Identifier: Apache-2.0
// FakeJudge: a judge that lies, for tests: answers the questions of verify/judge/judge.h from a function, in a thread.
#pragma once

#include <sys/socket.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "verify/execute/judge_slots.h"

namespace tritonrl {

// The reply to a question and its tensors; `tensors` gets those of the reply. Null = the judge is gone.
using JudgeReply = std::function<Json(const Json& question, const std::string& payload, std::string* tensors)>;

// A judge on the processor, or `beside` on each of `gpus` ("cuda:0", "cuda:1", ...), which come up as such. The answer
// is called from one thread a judge at a time.
inline std::unique_ptr<JudgeSlots> fake_judge(JudgeReply answer, std::vector<TargetGpu> gpus = {}, size_t beside = 1) {
  struct Threads {
    std::mutex mutex;
    std::vector<std::thread> all;
    ~Threads() {
      for (auto& thread : all) thread.join();  // Their slots are gone by then.
    }
  };
  auto threads = std::make_shared<Threads>();
  SlotOptions options;
  for (size_t i = 0; i < gpus.size() * beside; ++i) {
    options.devices.push_back("cuda:" + std::to_string(i % gpus.size()));
  }
  if (gpus.empty()) options.devices = {"cpu"};
  options.replayers = false;
  options.start = [threads, answer = std::move(answer), gpus = std::move(gpus)](const std::string& device) {
    Json hello = {{"finding", to_json(Finding())}};
    if (!gpus.empty()) hello["gpu"] = to_json(gpus[static_cast<size_t>(device.back() - '0')]);
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
    std::lock_guard lock(threads->mutex);
    threads->all.emplace_back([answer, hello, fd = ends[1]] {
      auto verifier = Channel::over(fd);
      for (ChannelMessage question; verifier->receive(&question, -1) == Channel::Answer::kCame;) {
        std::string tensors;
        Json reply = question.header["do"] == "hello" ? hello : answer(question.header, question.payload, &tensors);
        if (reply.is_null() || !verifier->send(reply, tensors)) return;
      }
    });
    return Channel::over(ends[0]);
  };
  return JudgeSlots::open(std::move(options));
}

}  // namespace tritonrl
