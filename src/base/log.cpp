// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>

#include "base/error.h"
#include "base/text.h"

namespace tritonrl {

namespace {

std::shared_ptr<spdlog::logger>& logger() {
  static auto instance = [] {
    auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
    sink->set_pattern("%^%L%$ %v");
    auto made = std::make_shared<spdlog::logger>("tritonrl", sink);
    made->set_level(spdlog::level::info);
    return made;
  }();
  return instance;
}

}  // namespace

void log_debug(std::string_view message) { logger()->debug(message); }
void log_info(std::string_view message) { logger()->info(message); }
void log_warn(std::string_view message) { logger()->warn(message); }
void log_error(std::string_view message) { logger()->error(message); }

void set_log_level(LogLevel level) {
  constexpr spdlog::level::level_enum levels[] = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                                                  spdlog::level::err};
  logger()->set_level(levels[static_cast<int>(level)]);
}

void set_log_speaker(const std::string& name) {
  auto& terminal = logger()->sinks().front();
  terminal->set_pattern("%^%L%$ " + name + ": %v");
  terminal->set_level(spdlog::level::warn);
}

void set_log_file(const std::string& path) {
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
    sink->set_pattern("%Y-%m-%dT%H:%M:%S%z %L %v");
    auto& sinks = logger()->sinks();
    if (sinks.size() > 1) sinks.pop_back();
    sinks.push_back(sink);
    logger()->flush_on(spdlog::level::debug);
  } catch (const spdlog::spdlog_ex& e) {
    throw environment_error(cat("cannot write the log: ", e.what()), path);
  }
}

std::string time_left(int64_t done, int64_t total, double seconds) {
  if (done < 3 || seconds < 5) return "";
  return human_seconds(static_cast<double>(std::max<int64_t>(total - done, 0)) * seconds / static_cast<double>(done)) +
         " left";
}

namespace {
std::atomic<const Progress*> line_owner{nullptr};  // Of the terminal's.
}

Progress::Progress(std::string what, int64_t total, std::string unit, int64_t already)
    : what_(std::move(what)),
      unit_(std::move(unit)),
      total_(total),
      already_(already),
      done_(already),
      terminal_(::isatty(STDERR_FILENO) == 1 && logger()->sinks().front()->should_log(spdlog::level::info)),
      start_(Clock::now()),
      last_print_(start_) {}

Progress::~Progress() {
  print(true);
  const Progress* own = this;
  line_owner.compare_exchange_strong(own, nullptr);
}

void Progress::update(int64_t done, const std::string& note) {
  done_ = done;
  note_ = note;
  double since = std::chrono::duration<double>(Clock::now() - last_print_).count();
  if (since < (terminal_ ? 0.1 : 10.0)) return;
  last_print_ = Clock::now();
  print(false);
}

void Progress::print(bool last) {
  double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  double rate = seconds > 0 ? static_cast<double>(done_ - already_) / seconds : 0;
  std::string numbers = cat(done_, "/", total_, " ", unit_, ", ", fixed(rate, rate < 10 ? 2 : 0), " ", unit_, "/s");
  std::string left = last ? "took " + human_seconds(seconds) : time_left(done_ - already_, total_ - already_, seconds);
  if (!left.empty()) numbers += ", " + left;
  if (!note_.empty()) numbers += ", " + note_;
  if (!terminal_ || last) {
    if (terminal_) std::fprintf(stderr, "\r\033[K");
    log_info(what_ + ": " + numbers);
    return;
  }
  const Progress* nobody = nullptr;
  if (!line_owner.compare_exchange_strong(nobody, this) && nobody != this) return;
  constexpr int kWidth = 24;
  int filled = total_ > 0 ? static_cast<int>(kWidth * std::min(done_, total_) / total_) : 0;
  std::string bar(static_cast<size_t>(filled), '=');
  bar.resize(kWidth, ' ');
  std::fprintf(stderr, "\r\033[K%s [%s] %s", what_.c_str(), bar.c_str(), numbers.c_str());
  std::fflush(stderr);
}

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace tritonrl
