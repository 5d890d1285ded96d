// SPDX-License-Identifier: Apache-2.0
// Channel: question and answer with a helper program over a socket, in the frames of worker/PROTOCOL.md
// ("u32 header length | u64 payload length | JSON header | payload").
//
// A helper is started with the socket as descriptor 3 and dies with its Channel. Thread rule: one thread at a time.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/files/json.h"

namespace tritonrl {

struct ChannelMessage {
  Json header;
  std::string payload;
};

class Channel {
 public:
  // Starts a program; `inherit` (or -1) becomes its descriptor 4. Throws Error (environment).
  static std::unique_ptr<Channel> start(const std::vector<std::string>& command, int inherit = -1);
  // Over a socket that is there; closes it.
  static std::unique_ptr<Channel> over(int fd);
  // The helper's own end: descriptor 3.
  static std::unique_ptr<Channel> of_parent();
  ~Channel();  // Kills the helper's process group.

  // False when the other side is gone.
  bool send(const Json& header, const std::string& payload = "");

  enum class Answer { kCame, kLate, kGone };
  // Waits at most `seconds` for one message (< 0: for ever).
  Answer receive(ChannelMessage* message, double seconds);

  // How the helper ended, once its side is closed: the signal that ended it (SIGKILL comes from outside: from whoever
  // runs the machine, or from a kernel out of memory), or an exit code. Waits at most `seconds` for it to end; nothing
  // when it is still there then, or was ended by kill().
  struct End {
    int signal = 0, exit_code = 0;
  };
  std::optional<End> ended(double seconds = 1) const;

  pid_t process() const { return process_; }
  void kill();  // At once.

 private:
  Channel(int fd, pid_t process) : fd_(fd), process_(process) {}
  Answer read(char* to, size_t size, double until);
  int fd_;
  pid_t process_;
};

// All of it, over a socket; false when the other side is gone.
bool send_all(int fd, const char* data, size_t size);

}  // namespace tritonrl
