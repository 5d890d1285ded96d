// SPDX-License-Identifier: Apache-2.0
// Shell commands beside the work: one at a time, in order, without holding anything up.
#pragma once

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace tritonrl {

struct BackgroundCommand {
  std::string name;  // For messages.
  std::string shell;
  std::map<std::string, std::string> environment;  // Besides this process's own.
};

// Thread rule: any thread; the callback comes from a thread of this object, before unfinished() leaves the name out.
class BackgroundCommands {
 public:
  using OnEnd = std::function<void(const BackgroundCommand&, int exit_code, double seconds)>;

  // Output of the commands, stdout and stderr, is appended to `log`.
  explicit BackgroundCommands(std::filesystem::path log, OnEnd on_end = {});
  ~BackgroundCommands();  // finish(0).

  void add(BackgroundCommand command);
  // Names of those that wait or run, in order.
  std::vector<std::string> unfinished() const;
  // Waits at most so long for all of them; then ends the one that runs, with all that it started (SIGTERM, and SIGKILL
  // after a second), and drops the others. Returns the names of those that were not run to their end.
  std::vector<std::string> finish(double seconds);

 private:
  void work();
  int run(const BackgroundCommand& command);

  std::filesystem::path log_;
  OnEnd on_end_;
  mutable std::mutex mutex_;  // Guards all below but thread_.
  std::condition_variable changed_;
  std::deque<BackgroundCommand> queue_;  // The first is the one that runs.
  int process_ = -1;                     // It leads a process group; not reaped while it stands here.
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace tritonrl
