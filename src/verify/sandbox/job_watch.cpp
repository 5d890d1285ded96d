// SPDX-License-Identifier: Apache-2.0
// Plain system calls: this runs in a freshly forked Python process.
#include "verify/sandbox/job_watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "verify/sandbox/sandbox_abi.h"

namespace tritonrl {
namespace {

constexpr double kCountingShare = 0.1;  // Of the time that may go into counting pages.

double monotonic_s() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The beginning of a small file; false when it cannot be read.
template <size_t N>
bool read_text(const char* path, char (&text)[N]) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  size_t size = 0;
  for (ssize_t n = 0; size < N - 1 && (n = read(fd, text + size, N - 1 - size)) > 0;) size += static_cast<size_t>(n);
  close(fd);
  text[size] = 0;
  return size > 0;
}

uint64_t page_bytes() {
  static const auto bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

uint64_t anonymous_bytes(pid_t process) {
  char path[64], text[256];
  snprintf(path, sizeof path, "/proc/%d/statm", process);
  unsigned long long size = 0, resident = 0, shared = 0;
  if (!read_text(path, text) || sscanf(text, "%llu %llu %llu", &size, &resident, &shared) != 3) return 0;
  return resident > shared ? (resident - shared) * page_bytes() : 0;
}

// Seconds of processor time of a process and of those that it has waited for; *threads = how many it has.
double processor_seconds(pid_t process, int64_t* threads) {
  char path[64], text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", process);
  *threads = 0;
  if (!read_text(path, text)) return 0;
  const char* rest = strrchr(text, ')');  // A name may hold anything.
  if (!rest) return 0;
  long long user = 0, system = 0, user_of_children = 0, system_of_children = 0, count = 0;
  int found = sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lld %lld %lld %lld %*d %*d %lld", &user,
                     &system, &user_of_children, &system_of_children, &count);
  if (found != 5) return 0;
  *threads = count;
  return static_cast<double>(user + system + user_of_children + system_of_children) /
         static_cast<double>(sysconf(_SC_CLK_TCK));
}

std::vector<pid_t> threads_of(pid_t process, int64_t count) {
  std::vector<pid_t> ids;
  if (count > 1) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", process);
    if (DIR* folder = opendir(path)) {
      while (dirent* entry = readdir(folder)) {
        if (int id = atoi(entry->d_name); id > 0) ids.push_back(id);
      }
      closedir(folder);
    }
  }
  if (ids.empty()) ids.push_back(process);
  return ids;
}

uint64_t bytes_in(const char* text, const char* field) {
  const char* at = strstr(text, field);
  unsigned long long kib = 0;
  return at && sscanf(at + strlen(field), " %llu", &kib) == 1 ? kib * 1024 : 0;
}

// What lies in the job's /tmp, which is a mount of its own.
uint64_t files_bytes(pid_t first) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/root/tmp", first);
  struct statvfs info {};
  if (statvfs(path, &info) != 0) return 0;
  return static_cast<uint64_t>(info.f_blocks - info.f_bfree) * info.f_frsize;
}

}  // namespace

int64_t out_of_memory_kills() {
  static char text[1 << 15];
  if (!read_text("/proc/vmstat", text)) return -1;
  const char* at = strstr(text, "\noom_kill ");
  return at ? atoll(at + strlen("\noom_kill ")) : -1;
}

JobWatch::JobWatch(pid_t first, uint64_t cap_bytes)
    : first_(first), cap_(cap_bytes), inherited_(anonymous_bytes(getpid())), window_began_(monotonic_s()) {}

void JobWatch::walk() {
  processes_.clear();
  waited_.clear();
  processor_s_ = 0;
  std::vector<pid_t> open = {first_};
  while (!open.empty() && processes_.size() < kMostProcesses) {
    pid_t process = open.back();
    open.pop_back();
    int64_t threads = 0;
    processor_s_ += processor_seconds(process, &threads);
    processes_.push_back({process, anonymous_bytes(process)});
    for (pid_t thread : threads_of(process, threads)) {
      char path[96], text[4096];
      snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", process, thread);
      unsigned long long ran = 0, waited = 0;
      if (read_text(path, text) && sscanf(text, "%llu %llu", &ran, &waited) == 2) waited_[thread] = waited;
      snprintf(path, sizeof path, "/proc/%d/task/%d/children", process, thread);
      if (!read_text(path, text)) continue;
      for (char *at = text, *end = nullptr;; at = end) {
        long id = strtol(at, &end, 10);
        if (end == at) break;
        open.push_back(static_cast<pid_t>(id));
      }
    }
  }
}

void JobWatch::advance(double now) {
  uint64_t most = 0;
  for (const auto& [thread, waited] : waited_) {
    auto before = waited_before_.find(thread);
    uint64_t since = before == waited_before_.end() ? 0 : before->second;
    most = std::max(most, waited - std::min(since, waited));
  }
  double passed = now - window_began_, waited_s = waited_.size() > kMostWaiting ? 0 : 1e-9 * static_cast<double>(most);
  own_s_ += std::max(processor_s_ - processor_before_, passed - std::min(waited_s, passed));
  processor_before_ = processor_s_;
  waited_before_ = waited_;
  window_began_ = now;
}

void JobWatch::look() {
  walk();
  double now = monotonic_s();
  if (now - window_began_ >= kWindowS) advance(now);
  if (multiplies()) return;  // Its end is near; what it maps is locked most of the time.
  uint64_t bound = 0;
  for (const Process& process : processes_) bound += process.anonymous;
  uint64_t files = files_bytes(first_);
  memory_ = bound - std::min(bound, inherited_) + files;
  if (memory_ > cap_) {
    if (now >= count_again_at_ || bound > counted_bound_ + cap_ / 4) {  // What grew is not in an old count.
      counted_ = count_pages();
      counted_bound_ = bound;
      count_again_at_ = now + (monotonic_s() - now) / kCountingShare;
    }
    memory_ = counted_ + files;
  }
  peak_ = std::max(peak_, memory_);
}

uint64_t JobWatch::count_pages() const {
  uint64_t own = 0, shared = 0;
  for (const Process& process : processes_) {
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", process.id);
    if (!read_text(path, text)) {
      own += anonymous_bytes(process.id);  // Gone, or not to be read: then all of it counts.
      continue;
    }
    uint64_t anonymous = bytes_in(text, "\nPss_Anon:"), alone = bytes_in(text, "\nPrivate_Dirty:");
    own += std::min(anonymous, alone) + bytes_in(text, "\nSwapPss:");
    shared += anonymous - std::min(anonymous, alone);
  }
  return own + shared - std::min(shared, inherited_);
}

void JobWatch::finish(double processor_s) {
  processor_s_ = std::max(processor_s, processor_before_);
  advance(monotonic_s());
}

}  // namespace tritonrl

int tritonrl_sandbox_watch(int first, uint64_t memory_bytes, double deadline_s, TritonrlJobReport* report) {
  *report = {};
  int64_t kills_before = tritonrl::out_of_memory_kills();
  tritonrl::JobWatch watch(first, memory_bytes);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGCHLD);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  double look_at = tritonrl::monotonic_s() + tritonrl::JobWatch::kEveryS;
  for (bool ended = false; !ended;) {
    siginfo_t child{};
    while (waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == 0 && child.si_pid != 0) {
      if (child.si_pid == first) {
        ended = true;
        break;
      }
      waitpid(child.si_pid, nullptr, 0);  // An orphan of the job's.
    }
    if (ended) break;
    double patience = std::max(look_at - tritonrl::monotonic_s(), 0.0);
    timespec wait{static_cast<time_t>(patience), static_cast<long>(1e9 * (patience - static_cast<time_t>(patience)))};
    if (sigtimedwait(&signals, nullptr, &wait) == SIGTERM) kill(first, SIGKILL);
    if (tritonrl::monotonic_s() < look_at) continue;
    watch.look();
    look_at = tritonrl::monotonic_s() + tritonrl::JobWatch::kEveryS;
    if (report->ended_by != TRITONRL_ENDED_ITSELF) continue;
    if (!watch.multiplies() && watch.memory_bytes() > memory_bytes) report->ended_by = TRITONRL_ENDED_BY_MEMORY;
    if (watch.own_s() > deadline_s || watch.multiplies()) report->ended_by = TRITONRL_ENDED_BY_DEADLINE;
    if (report->ended_by != TRITONRL_ENDED_ITSELF) kill(first, SIGKILL);
  }
  watch.look();  // How long its threads have waited can still be seen.
  rusage used{};
  if (wait4(first, &report->wait_status, 0, &used) != first) return -errno;
  auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  report->processor_s = seconds(used.ru_utime) + seconds(used.ru_stime);
  watch.finish(report->processor_s);
  report->own_s = watch.own_s();
  report->peak_bytes = watch.peak_bytes();
  report->machine_ran_out = kills_before >= 0 && tritonrl::out_of_memory_kills() != kills_before;
  return 0;
}
