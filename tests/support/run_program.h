// SPDX-License-Identifier: Apache-2.0
// Runs the program in a process of its own; for tests of what a user meets.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "base/process/build_paths.h"

extern char** environ;

namespace tritonrl {

struct Ended {
  int code = -1;
  std::string said;            // stdout and stderr.
  double seconds = 0;          // From its start,
  double seconds_to_stop = 0;  // and from the signal to its end.
};

// When to send a signal: as soon as the output holds `text`, or `seconds` after the start, or after that text.
struct StopAt {
  std::string text = "";
  int signal = SIGINT;
  double seconds = -1;
};

// Runs the program. Ending before the moment to stop it is a failure where a text alone tells it.
inline Ended run(std::vector<std::string> arguments, const StopAt& stop) {
  using Clock = std::chrono::steady_clock;
  auto since = [](Clock::time_point then) { return std::chrono::duration<double>(Clock::now() - then).count(); };
  arguments.insert(arguments.begin(), build_dir() + "/tritonrl");
  std::vector<char*> argv;
  for (std::string& word : arguments) argv.push_back(word.data());
  argv.push_back(nullptr);
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  pid_t process = -1;
  auto start = Clock::now(), stopped_at = start;
  EXPECT_EQ(::posix_spawn(&process, argv[0], &actions, nullptr, argv.data(), environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  Ended ended;
  bool stopped = false, seen = stop.text.empty(), wanted = !seen || stop.seconds >= 0;
  auto seen_at = start;
  char buffer[4096];
  while (true) {
    double left = stop.seconds - since(seen_at);
    bool counting = seen && wanted && !stopped;
    pollfd readable = {ends[0], POLLIN, 0};
    if (::poll(&readable, 1, counting ? std::max(0, static_cast<int>(left * 1000)) : -1) > 0) {
      ssize_t n = ::read(ends[0], buffer, sizeof buffer);
      if (n <= 0) break;
      ended.said.append(buffer, static_cast<size_t>(n));
    }
    if (!seen && ended.said.find(stop.text) != std::string::npos) {
      seen = true;
      seen_at = Clock::now();
    }
    if (!wanted || stopped || !seen || since(seen_at) < stop.seconds) continue;
    ::kill(process, stop.signal);
    stopped_at = Clock::now();
    stopped = true;
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(process, &status, 0);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  ended.seconds = since(start);
  ended.seconds_to_stop = since(stopped_at);
  EXPECT_TRUE(stopped || stop.text.empty() || stop.seconds >= 0)
      << "never said \"" << stop.text << "\": " << ended.said;
  return ended;
}

// Runs the program; where `stop_at` is not empty, sends `signal` as soon as its output holds that text.
inline Ended run(std::vector<std::string> arguments, const std::string& stop_at = "", int signal = SIGINT) {
  return run(std::move(arguments), StopAt{stop_at, signal});
}

}  // namespace tritonrl
