// SPDX-License-Identifier: Apache-2.0
#include "verify/sandbox/fork_server.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/check.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "verify/sandbox/channel.h"

namespace tritonrl {
namespace {

constexpr uint32_t kMaxFrameHeader = 1 << 20;
constexpr uint64_t kMaxFramePayload = uint64_t{1} << 30;
constexpr size_t kStderrTail = 8192;

std::optional<JobAnswer::Status> status_from(const std::string& name) {
  using Status = JobAnswer::Status;
  static const std::map<std::string, Status> names = {
      {"exited", Status::kExited}, {"signaled", Status::kSignaled},     {"deadline", Status::kDeadline},
      {"memory", Status::kMemory}, {"starved", Status::kStarved},       {"overflow", Status::kOverflow},
      {"killed", Status::kKilled}, {"fork_failed", Status::kForkFailed}};
  auto it = names.find(name);
  return it == names.end() ? std::nullopt : std::optional(it->second);
}

JobAnswer lost(const std::string& why) {
  JobAnswer answer;
  answer.fault = why;
  return answer;
}

void close_fd(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

// Ends the process group and reaps its leader. With `patience_s`, lets it end by itself first.
void end_process(pid_t process, double patience_s) {
  if (process <= 0) return;
  double until = now_s() + patience_s;
  int status = 0;
  while (waitpid(process, &status, WNOHANG) == 0) {
    if (now_s() > until) {
      ::kill(-process, SIGKILL);
      while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
      }
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ::kill(-process, SIGKILL);  // The leader is gone; whoever it left behind goes too.
}

}  // namespace

const char* to_string(ForkServerKind kind) { return kind == ForkServerKind::kRecord ? "record" : "interpret"; }

std::string random_hex(size_t bytes) {
  std::string raw(bytes, '\0');
  CHECK(getrandom(raw.data(), raw.size(), 0) == static_cast<ssize_t>(raw.size())) << "getrandom failed";
  std::string out;
  for (unsigned char c : raw) {
    out += "0123456789abcdef"[c >> 4];
    out += "0123456789abcdef"[c & 15];
  }
  return out;
}

std::unique_ptr<ForkServer> ForkServer::attach(Connection connection, double ready_timeout_s) {
  std::unique_ptr<ForkServer> server(new ForkServer(connection));
  timeval patience{60, 0};  // A fork server that does not read for a minute is lost.
  setsockopt(connection.fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  auto ready = server->ready_.get_future();
  server->reader_ = std::thread([z = server.get()] { z->read_loop(); });
  bool answered = ready.wait_for(std::chrono::duration<double>(ready_timeout_s)) == std::future_status::ready;
  if (!answered || !server->alive()) {
    std::string why = answered ? server->reason_ : cat("no answer within ", human_seconds(ready_timeout_s));
    server->kill(why);
    std::lock_guard lock(server->mutex_);
    std::string said = trim(valid_utf8(server->stderr_tail_));
    throw environment_error(cat("the Python worker did not start: ", why, said.empty() ? "" : cat("; it said: ", said)),
                            "", "run `tritonrl doctor`");
  }
  return server;
}

ForkServer::~ForkServer() {
  if (alive_) write_frame(R"({"type": "quit"})", "");
  if (connection_.fd >= 0) shutdown(connection_.fd, SHUT_WR);
  end_process(connection_.process, alive_ ? 0.5 : 0);
  connection_.process = -1;
  kill("shut down");
  if (reader_.joinable()) reader_.join();
  close_fd(connection_.fd);
  close_fd(connection_.stderr_fd);
}

std::future<JobAnswer> ForkServer::submit(Job job) {
  std::string nonce = random_hex(16);
  std::future<JobAnswer> future;
  int64_t id = 0;
  {
    std::lock_guard lock(mutex_);
    id = next_id_++;
    Pending& pending = pending_[id];
    pending.nonce = nonce;
    future = pending.promise.get_future();
  }
  Json header = {{"type", "job"},
                 {"id", id},
                 {"job", job.kind},
                 {"deadline_s", job.deadline_s},
                 {"patience_s", job.wall_limit_s()},
                 {"max_result_bytes", job.max_result_bytes},
                 {"memory_bytes", job.memory_bytes},
                 {"nonce", nonce},
                 {"args", std::move(job.args)}};
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kMaxFrameHeader || job.payload.size() > kMaxFramePayload) {
    fail(id, "the job is too large for a frame");
  } else if (!alive_ || !write_frame(text, job.payload)) {
    kill("it does not take jobs");
    fail_all("the worker does not take jobs");
  }
  return future;
}

void ForkServer::fail(int64_t id, const std::string& reason) {
  std::lock_guard lock(mutex_);
  auto it = pending_.find(id);
  if (it == pending_.end()) return;
  it->second.promise.set_value(lost(reason));
  pending_.erase(it);
}

bool ForkServer::write_frame(const std::string& text, const std::string& payload) {
  auto header_length = static_cast<uint32_t>(text.size());
  uint64_t payload_length = payload.size();
  char lengths[12];
  std::memcpy(lengths, &header_length, 4);
  std::memcpy(lengths + 4, &payload_length, 8);
  std::lock_guard lock(write_mutex_);
  return send_all(connection_.fd, lengths, sizeof lengths) && send_all(connection_.fd, text.data(), text.size()) &&
         send_all(connection_.fd, payload.data(), payload.size());
}

bool ForkServer::read_exactly(char* to, size_t size) {
  while (size > 0) {
    pollfd fds[2] = {{connection_.fd, POLLIN, 0}, {connection_.stderr_fd, POLLIN, 0}};
    if (poll(fds, 2, -1) < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    if (fds[1].revents) {
      char text[4096];
      ssize_t n = ::read(connection_.stderr_fd, text, sizeof text);
      if (n <= 0) close_fd(connection_.stderr_fd);
      std::lock_guard lock(mutex_);
      if (n > 0) stderr_tail_.append(text, static_cast<size_t>(n));
      if (stderr_tail_.size() > kStderrTail) stderr_tail_.erase(0, stderr_tail_.size() - kStderrTail);
    }
    if (!fds[0].revents) continue;
    ssize_t n = ::read(connection_.fd, to, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    to += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

std::string ForkServer::read_frame(Json* header, std::string* payload) {
  char lengths[12];
  if (!read_exactly(lengths, sizeof lengths)) return "it ended";
  uint32_t header_length = 0;
  uint64_t payload_length = 0;
  std::memcpy(&header_length, lengths, 4);
  std::memcpy(&payload_length, lengths + 4, 8);
  if (header_length > kMaxFrameHeader || payload_length > kMaxFramePayload) return "it sent a frame of impossible size";
  std::string text(header_length, '\0');
  payload->assign(payload_length, '\0');
  if (!read_exactly(text.data(), text.size()) || !read_exactly(payload->data(), payload->size())) {
    return "it ended within a frame";
  }
  *header = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return header->is_object() ? "" : "it sent a frame that is not JSON";
}

std::string ForkServer::receive(const Json& header, std::string payload) {
  auto text = [&](const char* key) {
    return header.contains(key) && header[key].is_string() ? header[key].get<std::string>() : "";
  };
  auto number = [&](const char* key) {
    return header.contains(key) && header[key].is_number() ? header[key].get<double>() : -1;
  };
  if (!was_ready_) {
    if (text("type") != "ready") return "its first word was not \"ready\"";
    if (header.contains("missing") && header["missing"].is_array()) {
      for (const Json& name : header["missing"]) {
        if (name.is_string()) missing_.push_back(name.get<std::string>());
      }
    }
    was_ready_ = true;
    ready_.set_value();
    return "";
  }
  auto status = status_from(text("status"));
  if (text("type") != "done" || !status) return "it sent something that is no answer";
  auto id = static_cast<int64_t>(number("id"));
  std::unique_lock lock(mutex_);
  auto it = pending_.find(id);
  if (it == pending_.end()) return "it answered a job that is not there";
  Pending pending = std::move(it->second);
  pending_.erase(it);
  lock.unlock();
  JobAnswer answer;
  answer.status = *status;
  answer.code = static_cast<int>(number("code"));
  answer.seconds = number("seconds");
  answer.processor_s = std::max(number("processor_s"), 0.0);
  answer.own_s = std::max(number("own_s"), 0.0);
  answer.peak_bytes = static_cast<int64_t>(std::max(number("peak_bytes"), 0.0));
  answer.machine_ran_out = header.contains("machine_ran_out") && header["machine_ran_out"] == true;
  answer.stderr_tail = text("stderr");
  answer.result = std::move(payload);
  answer.nonce = pending.nonce;
  if (*status == JobAnswer::Status::kForkFailed) answer.fault = cat("the worker could not fork: ", answer.stderr_tail);
  pending.promise.set_value(std::move(answer));
  return "";
}

void ForkServer::read_loop() {
  std::string problem;
  while (problem.empty()) {
    Json header;
    std::string payload;
    problem = read_frame(&header, &payload);
    if (problem.empty()) problem = receive(header, std::move(payload));
  }
  kill(problem);
  {
    std::lock_guard lock(mutex_);
    problem = reason_;
  }
  fail_all(cat("the worker was lost: ", problem));
  if (!was_ready_) ready_.set_value();
}

void ForkServer::kill(const std::string& reason) {
  if (!alive_.exchange(false)) return;
  {
    std::lock_guard lock(mutex_);
    reason_ = reason;
  }
  if (connection_.process > 0) ::kill(-connection_.process, SIGKILL);
  if (connection_.fd >= 0) shutdown(connection_.fd, SHUT_RDWR);  // Wakes the reader.
}

void ForkServer::fail_all(const std::string& reason) {
  std::map<int64_t, Pending> orphans;
  {
    std::lock_guard lock(mutex_);
    orphans.swap(pending_);
  }
  for (auto& [id, pending] : orphans) pending.promise.set_value(lost(reason));
}

std::unique_ptr<ForkServerPool> ForkServerPool::open(Starter starter, double ready_timeout_s) {
  std::unique_ptr<ForkServerPool> pool(new ForkServerPool(std::move(starter), ready_timeout_s));
  auto other = std::async(std::launch::async, [&] { pool->server(ForkServerKind::kInterpret); });
  pool->server(ForkServerKind::kRecord);
  other.get();
  pool->restarts_ = 0;
  return pool;
}

std::shared_ptr<ForkServer> ForkServerPool::server(ForkServerKind kind) {
  auto index = static_cast<size_t>(kind);
  std::lock_guard lock(mutexes_[index]);
  auto& slot = servers_[index];
  if (!slot || !slot->alive()) {
    slot.reset();
    slot = ForkServer::attach(starter_(kind), ready_timeout_s_);
    ++restarts_;
  }
  return slot;
}

JobAnswer ForkServerPool::run(ForkServerKind kind, Job job) {
  std::shared_ptr<ForkServer> worker;
  try {
    worker = server(kind);
  } catch (const Error& error) {
    return lost(error.message());
  }
  double patience = job.wall_limit_s() + grace_s_;
  auto future = worker->submit(std::move(job));
  if (future.wait_for(std::chrono::duration<double>(patience)) != std::future_status::ready) {
    log_warn(cat("the ", to_string(kind), " worker hangs; it is restarted"));
    worker->kill("it hung");
  }
  return future.get();
}

std::vector<std::string> ForkServerPool::missing() const {
  std::vector<std::string> names;
  for (const auto& server : servers_) {
    if (!server) continue;
    for (const auto& name : server->missing()) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

Connection spawn_fork_server(const std::vector<std::string>& command) {
  int ends[2] = {-1, -1}, said[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0 || pipe2(said, O_CLOEXEC) != 0) {
    throw environment_error(cat("cannot make a socket pair: ", std::strerror(errno)));
  }
  // Out of the way of the descriptors they are to become.
  int child = fcntl(ends[1], F_DUPFD_CLOEXEC, 10), err = fcntl(said[1], F_DUPFD_CLOEXEC, 10);
  ::close(ends[1]);
  ::close(said[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, err, 1);
  posix_spawn_file_actions_adddup2(&actions, err, 2);
  posix_spawn_file_actions_adddup2(&actions, child, 3);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<char*> argv;
  for (const auto& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  Connection connection{ends[0], -1, said[0]};
  int rc = posix_spawn(&connection.process, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  ::close(child);
  ::close(err);
  if (rc != 0) {
    close_fd(connection.fd);
    close_fd(connection.stderr_fd);
    throw environment_error(cat("cannot start ", command[0], ": ", std::strerror(rc)), command[0],
                            "build the project first");
  }
  return connection;
}

}  // namespace tritonrl
