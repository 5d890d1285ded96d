// SPDX-License-Identifier: Apache-2.0
// Fork servers: the verifier's end of worker/PROTOCOL.md.
//
// Theory of operation. A ForkServer is two Python processes in the outer jail: a broker, which holds all jobs' bytes,
// and the one that forks a sandboxed child for each job, which has torch and triton imported and holds no job's bytes.
// We talk to the broker over one stream socket: submit() writes a frame and leaves a promise, a reader thread fulfils
// promises as answers arrive, in any order. Both processes are ours and run no candidate code, so anything wrong *on
// the wire* (garbage, half a frame, an answer to nothing) is a harness fault: the connection is given up, the process
// group killed, and every job in flight is answered kLost. What is *inside* a payload comes from a child and may be
// hostile; blob.h judges that.
//
// A child that hangs is killed by its monitor at the job's deadline, which the broker's wall clock backs
// (wall_limit_s). A fork server that hangs is noticed by whoever waits: kGraceS after that it is killed. ForkServerPool
// starts a new one with the next job.
//
// Processes are started with posix_spawn (this process may be large) in a process group of their own; they end by
// themselves when our end of the socket closes, however we die.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/files/json.h"

namespace tritonrl {

struct Job {
  std::string kind;  // "record", "compile" or "interpret".
  Json args;
  std::string payload;
  double deadline_s = 30;                   // On the job's own clock (job_watch.h): load does not count.
  double patience_s = 0;                    // Wall clock for a job that gets no processor; 0 = by the deadline.
  int64_t memory_bytes = int64_t{4} << 30;  // Of all its processes and files together, beyond what it begins with.
  int64_t max_result_bytes = int64_t{256} << 20;

  // A job that runs at a sixth of its speed, beside others, is still one that will end.
  double wall_limit_s() const { return patience_s > 0 ? patience_s : 6 * deadline_s + 30; }
};

struct JobAnswer {
  // kStarved: its patience passed before its deadline; kMemory: it held more than its memory.
  enum class Status { kExited, kSignaled, kDeadline, kMemory, kStarved, kOverflow, kKilled, kForkFailed, kLost };
  Status status = Status::kLost;
  int code = 0;                  // Exit code or signal number.
  double seconds = 0;            // Wall clock of the child.
  double processor_s = 0;        // Processor time of the child and of the processes that it waited for.
  double own_s = 0;              // What its own clock says: processor time of all its processes, or sleep.
  int64_t peak_bytes = 0;        // Most memory that the job was seen to hold.
  bool machine_ran_out = false;  // While it ran, the kernel killed a process of the machine for want of memory.
  std::string stderr_tail;       // Of the child; tainted.
  std::string result;            // The child's blob; tainted.
  std::string nonce;             // What the blob must carry.
  std::string fault;             // Why the job was lost (kLost, kForkFailed).
};

enum class ForkServerKind { kRecord, kInterpret };
const char* to_string(ForkServerKind kind);  // "record", "interpret".

// Whatever can do jobs. Tests have one that lies.
class WorkerPool {
 public:
  virtual ~WorkerPool() = default;
  // Blocks until the job is answered; never throws for anything a job or a fork server does. Thread rule: any thread.
  virtual JobAnswer run(ForkServerKind kind, Job job) = 0;
};

// A started fork server: our end of its socket, its process group and the read end of its stderr (-1 = none).
struct Connection {
  int fd = -1;
  pid_t process = -1;
  int stderr_fd = -1;
};

class ForkServer {
 public:
  // Takes over the connection and waits for "ready". Throws Error (environment) when it does not come.
  static std::unique_ptr<ForkServer> attach(Connection connection, double ready_timeout_s);
  ~ForkServer();  // Says "quit", waits shortly, kills the process group.

  std::future<JobAnswer> submit(Job job);
  bool alive() const { return alive_; }
  void kill(const std::string& reason);  // Jobs in flight are answered kLost.
  const std::vector<std::string>& missing() const { return missing_; }

 private:
  explicit ForkServer(Connection connection) : connection_(connection) {}
  void read_loop();
  std::string read_frame(Json* header, std::string* payload);  // "" or what is wrong.
  std::string receive(const Json& header, std::string payload);
  bool read_exactly(char* to, size_t size);
  bool write_frame(const std::string& header, const std::string& payload);
  void fail(int64_t id, const std::string& reason);
  void fail_all(const std::string& reason);

  Connection connection_;
  std::thread reader_;
  std::mutex mutex_;  // Guards pending_, next_id_, stderr_tail_, reason_.
  std::mutex write_mutex_;
  struct Pending {
    std::promise<JobAnswer> promise;
    std::string nonce;
  };
  std::map<int64_t, Pending> pending_;
  int64_t next_id_ = 1;
  std::atomic<bool> alive_{true};
  std::promise<void> ready_;
  bool was_ready_ = false;
  std::vector<std::string> missing_;
  std::string stderr_tail_, reason_;
};

// One record and one interpret fork server, restarted when they are lost.
class ForkServerPool : public WorkerPool {
 public:
  using Starter = std::function<Connection(ForkServerKind)>;
  static constexpr double kGraceS = 15;

  // Starts both at once. Throws Error (environment) when one does not come up.
  static std::unique_ptr<ForkServerPool> open(Starter starter, double ready_timeout_s = 120);

  JobAnswer run(ForkServerKind kind, Job job) override;
  std::vector<std::string> missing() const;  // Protections missing inside, as the fork servers report them.
  int64_t restarts() const { return restarts_; }
  void set_grace_s(double seconds) { grace_s_ = seconds; }  // For tests.

 private:
  ForkServerPool(Starter starter, double timeout) : starter_(std::move(starter)), ready_timeout_s_(timeout) {}
  std::shared_ptr<ForkServer> server(ForkServerKind kind);

  Starter starter_;
  double ready_timeout_s_;
  double grace_s_ = kGraceS;
  std::mutex mutexes_[2];
  std::shared_ptr<ForkServer> servers_[2];
  std::atomic<int64_t> restarts_{0};
};

// Starts `command` (the jail and what runs in it) with a socket as descriptor 3. Throws Error (environment).
Connection spawn_fork_server(const std::vector<std::string>& command);

// n random bytes from the kernel, as hex.
std::string random_hex(size_t bytes);

}  // namespace tritonrl
