// SPDX-License-Identifier: Apache-2.0
// Runs the program in a process of its own; for tests of what a user meets.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

extern char** environ;

namespace tritonrl {

struct Ended {
  int code = -1;
  std::string said;  // stdout and stderr.
};

// Runs the program; where `stop_at` is not empty, sends `signal` as soon as its output holds that text.
inline Ended run(std::vector<std::string> arguments, const std::string& stop_at = "", int signal = SIGINT) {
  arguments.insert(arguments.begin(), TRITONRL_PROGRAM);
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
  EXPECT_EQ(::posix_spawn(&process, argv[0], &actions, nullptr, argv.data(), environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  Ended ended;
  bool stopped = false;
  char buffer[4096];
  for (ssize_t n; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;) {
    ended.said.append(buffer, static_cast<size_t>(n));
    if (!stop_at.empty() && !stopped && ended.said.find(stop_at) != std::string::npos) {
      ::kill(process, signal);
      stopped = true;
    }
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(process, &status, 0);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  EXPECT_EQ(stopped, !stop_at.empty()) << "never said \"" << stop_at << "\": " << ended.said;
  return ended;
}

}  // namespace tritonrl
