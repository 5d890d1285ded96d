// SPDX-License-Identifier: Apache-2.0
#include "base/process/background_commands.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>

#include "base/log.h"
#include "base/text.h"

extern char** environ;

namespace tritonrl {

namespace {

constexpr int kNotStarted = 127;  // As a shell says it.

std::vector<std::string> environment_with(const std::map<std::string, std::string>& more) {
  std::vector<std::string> out;
  for (char** entry = environ; *entry; ++entry) {
    std::string text = *entry;
    if (!more.contains(text.substr(0, text.find('=')))) out.push_back(std::move(text));
  }
  for (const auto& [name, value] : more) out.push_back(name + "=" + value);
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

BackgroundCommands::BackgroundCommands(std::filesystem::path log, OnEnd on_end)
    : log_(std::move(log)), on_end_(std::move(on_end)), thread_([this] { work(); }) {}

BackgroundCommands::~BackgroundCommands() {
  finish(0);
  thread_.join();
}

void BackgroundCommands::add(BackgroundCommand command) {
  std::lock_guard lock(mutex_);
  if (closing_) return;
  queue_.push_back(std::move(command));
  changed_.notify_all();
}

std::vector<std::string> BackgroundCommands::unfinished() const {
  std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const BackgroundCommand& command : queue_) names.push_back(command.name);
  return names;
}

std::vector<std::string> BackgroundCommands::finish(double seconds) {
  using std::chrono::duration;
  std::unique_lock lock(mutex_);
  auto idle = [&] { return queue_.empty(); };
  changed_.wait_for(lock, duration<double>(seconds), idle);
  std::vector<std::string> left;
  for (const BackgroundCommand& command : queue_) left.push_back(command.name);
  closing_ = true;
  if (queue_.size() > 1) queue_.erase(queue_.begin() + 1, queue_.end());
  changed_.notify_all();
  for (int signal : {SIGTERM, SIGKILL}) {
    if (idle()) break;
    if (process_ > 0) ::kill(-process_, signal);
    changed_.wait_for(lock, duration<double>(1), idle);
  }
  return left;
}

void BackgroundCommands::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return closing_ || !queue_.empty(); });
    if (queue_.empty() || closing_) {
      queue_.clear();
      changed_.notify_all();
      return;
    }
    BackgroundCommand command = queue_.front();
    lock.unlock();
    auto start = now_s();
    int code = run(command);
    lock.lock();
    bool given_up = closing_;
    lock.unlock();
    if (on_end_ && !given_up) on_end_(command, code, now_s() - start);
    lock.lock();
    queue_.pop_front();
    changed_.notify_all();
  }
}

int BackgroundCommands::run(const BackgroundCommand& command) {
  int log = ::open(log_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (log < 0) {
    log_warn(cat("cannot write ", log_.string(), ": ", std::strerror(errno)));
    return kNotStarted;
  }
  std::vector<std::string> arguments = {"/bin/sh", "-c", command.shell};
  std::vector<std::string> environment = environment_with(command.environment);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, log, 1);
  posix_spawn_file_actions_adddup2(&files, log, 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // A group of its own: a Ctrl-C in the terminal is not meant for it, and it can be ended with all that it started.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  sigset_t usual;
  sigemptyset(&usual);
  for (int signal : {SIGINT, SIGTERM, SIGXFSZ, SIGPIPE}) sigaddset(&usual, signal);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  pid_t process = -1;
  int failed;
  {
    std::lock_guard lock(mutex_);  // So that finish() sees the process or that there is none yet.
    failed = closing_ ? ECANCELED
                      : ::posix_spawn(&process, arguments[0].c_str(), &files, &attributes, pointers(arguments).data(),
                                      pointers(environment).data());
    if (failed == 0) process_ = process;
  }
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  ::close(log);
  if (failed != 0) {
    if (failed != ECANCELED) log_warn(cat("cannot start ", arguments[0], ": ", std::strerror(failed)));
    return kNotStarted;
  }
  siginfo_t info;
  while (::waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
  std::lock_guard lock(mutex_);
  process_ = -1;
  int status = 0;
  ::waitpid(process, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace tritonrl
