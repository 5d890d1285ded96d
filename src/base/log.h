// SPDX-License-Identifier: Apache-2.0
// The program's voice: lines to standard error and, once a run has started, to its log.txt; and progress bars.
//
// Standard output is left to results (JSON, tables), so that it can be piped. Thread rule: all functions may be called
// from any thread; a Progress belongs to one. Of several that are alive the oldest has the terminal's line.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace tritonrl {

enum class LogLevel { kDebug, kInfo, kWarn, kError };

void log_debug(std::string_view message);
void log_info(std::string_view message);
void log_warn(std::string_view message);
void log_error(std::string_view message);

void set_log_level(LogLevel level);
// One of several processes at work together: on the terminal it gives warnings and errors alone, behind this name, and
// shows no bars.
void set_log_speaker(const std::string& name);
// Also writes every line, with time stamps, to this file (appending). Throws Error (environment).
void set_log_file(const std::string& path);

// "1 m 10 s left" for work of which `done` of `total` items took `seconds`; "" while that would be a guess (fewer than
// three items or five seconds).
std::string time_left(int64_t done, int64_t total, double seconds);

// A bar with rate and time left on a terminal; a plain line every ten seconds elsewhere.
//   Progress bar("SFT", steps, "step");  ...  bar.update(done, "loss 0.31");
class Progress {
 public:
  // `already`: items that were done before, which say nothing about the rate.
  Progress(std::string what, int64_t total, std::string unit, int64_t already = 0);
  ~Progress();  // Ends the line; says how long the phase took.
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(int64_t done, const std::string& note = "");

 private:
  void print(bool last);
  using Clock = std::chrono::steady_clock;
  std::string what_, unit_, note_;
  int64_t total_, already_, done_;
  bool terminal_;
  Clock::time_point start_, last_print_;
};

// Seconds since an arbitrary fixed point, monotonic.
double now_s();

}  // namespace tritonrl
