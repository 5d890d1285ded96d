// SPDX-License-Identifier: Apache-2.0
// The program's voice: lines to standard error and, once a run has started, to its log.txt; and progress bars.
//
// Standard output is left to results (JSON, tables), so that it can be piped. Thread rule: all functions may be called
// from any thread; one Progress is alive at a time.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace tritonrl {

enum class LogLevel { kDebug, kInfo, kWarn, kError };

void log_debug(std::string_view message);
void log_info(std::string_view message);
void log_warn(std::string_view message);
void log_error(std::string_view message);

void set_log_level(LogLevel level);
// Also writes every line, with time stamps, to this file (appending). Throws Error (environment).
void set_log_file(const std::string& path);

// A bar with rate and time left on a terminal; a plain line every ten seconds elsewhere.
//   Progress bar("SFT", steps, "step");  ...  bar.update(done, "loss 0.31");
class Progress {
 public:
  Progress(std::string what, int64_t total, std::string unit);
  ~Progress();  // Ends the line; says how long the phase took.
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(int64_t done, const std::string& note = "");

 private:
  void print(bool last);
  using Clock = std::chrono::steady_clock;
  std::string what_, unit_, note_;
  int64_t total_, done_ = 0;
  bool terminal_;
  Clock::time_point start_, last_print_;
};

// Seconds since an arbitrary fixed point, monotonic.
double now_s();

}  // namespace tritonrl
