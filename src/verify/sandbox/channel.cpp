// SPDX-License-Identifier: Apache-2.0
#include "verify/sandbox/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"

extern char** environ;

namespace tritonrl {
namespace {

constexpr uint32_t kMaxHeader = 8 << 20;
constexpr uint64_t kMaxPayload = uint64_t{1} << 30;
constexpr int kHelperSocket = 3, kHelperExtra = 4;

// A copy of `fd` well above those the helper will use, closed on exec.
int out_of_the_way(int fd) {
  int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 16);
  ::close(fd);
  return copy;
}

}  // namespace

bool send_all(int fd, const char* data, size_t size) {
  while (size > 0) {
    ssize_t n = ::send(fd, data, size, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

std::unique_ptr<Channel> Channel::start(const std::vector<std::string>& command, int inherit) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw environment_error(cat("cannot make a socket: ", std::strerror(errno)), command[0]);
  }
  int ours = out_of_the_way(ends[0]), theirs = out_of_the_way(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, theirs, kHelperSocket);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);  // Kernels may print.
  if (inherit >= 0) posix_spawn_file_actions_adddup2(&actions, inherit, kHelperExtra);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t process = -1;
  int failed = ::posix_spawn(&process, command[0].c_str(), &actions, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  ::close(theirs);
  if (failed != 0) {
    ::close(ours);
    throw environment_error(cat("cannot start it: ", std::strerror(failed)), command[0], "build it: ./test.sh");
  }
  return std::unique_ptr<Channel>(new Channel(ours, process));
}

std::unique_ptr<Channel> Channel::over(int fd) { return std::unique_ptr<Channel>(new Channel(fd, -1)); }

std::unique_ptr<Channel> Channel::of_parent() { return over(kHelperSocket); }

Channel::~Channel() {
  kill();
  if (fd_ >= 0) ::close(fd_);
}

void Channel::kill() {
  if (process_ <= 0) return;
  ::kill(-process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
  process_ = -1;
}

std::optional<Channel::End> Channel::ended(double seconds) const {
  if (process_ <= 0) return std::nullopt;
  for (double until = now_s() + seconds;; ::usleep(1000)) {
    siginfo_t info{};
    // WNOWAIT: kill() reaps it, and until then no other process has its id.
    if (::waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
      bool exited = info.si_code == CLD_EXITED;
      return End{exited ? 0 : info.si_status, exited ? info.si_status : 0};
    }
    if (now_s() >= until) return std::nullopt;
  }
}

bool Channel::send(const Json& header, const std::string& payload) {
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  auto header_length = static_cast<uint32_t>(text.size());
  uint64_t payload_length = payload.size();
  if (text.size() > kMaxHeader || payload_length > kMaxPayload) return false;
  char lengths[12];
  std::memcpy(lengths, &header_length, 4);
  std::memcpy(lengths + 4, &payload_length, 8);
  return send_all(fd_, lengths, sizeof lengths) && send_all(fd_, text.data(), text.size()) &&
         send_all(fd_, payload.data(), payload.size());
}

Channel::Answer Channel::read(char* to, size_t size, double until) {
  while (size > 0) {
    int wait_ms = -1;
    if (until >= 0) {
      double left = until - now_s();
      if (left <= 0) return Answer::kLate;
      wait_ms = static_cast<int>(std::ceil(std::min(left, 1e6) * 1000));
    }
    pollfd poller{fd_, POLLIN, 0};
    int ready = ::poll(&poller, 1, wait_ms);
    if (ready < 0 && errno != EINTR) return Answer::kGone;
    if (ready <= 0) continue;
    ssize_t n = ::read(fd_, to, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Answer::kGone;
    to += n;
    size -= static_cast<size_t>(n);
  }
  return Answer::kCame;
}

Channel::Answer Channel::receive(ChannelMessage* message, double seconds) {
  double until = seconds < 0 ? -1 : now_s() + seconds;
  char lengths[12];
  Answer answer = read(lengths, sizeof lengths, until);
  if (answer != Answer::kCame) return answer;
  uint32_t header_length = 0;
  uint64_t payload_length = 0;
  std::memcpy(&header_length, lengths, 4);
  std::memcpy(&payload_length, lengths + 4, 8);
  if (header_length > kMaxHeader || payload_length > kMaxPayload) return Answer::kGone;
  std::string text(header_length, '\0');
  message->payload.assign(payload_length, '\0');
  answer = read(text.data(), text.size(), until);
  if (answer == Answer::kCame) answer = read(message->payload.data(), message->payload.size(), until);
  if (answer != Answer::kCame) return answer;
  message->header = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return message->header.is_object() ? Answer::kCame : Answer::kGone;
}

}  // namespace tritonrl
