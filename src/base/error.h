// SPDX-License-Identifier: Apache-2.0
// Error: what went wrong outside our code (the user's input, the machine), where, and what to do about it.
//
// Thrown anywhere, caught once in main, which prints it and ends with exit_code(). Nothing a candidate does is an
// Error.
#pragma once

#include <exception>
#include <string>

namespace tritonrl {

enum class ErrorKind {
  kUsage,        // Bad command line, config or input file: exit code 2.
  kEnvironment,  // No disk space, no sandbox, no GPU where one is asked for: exit code 3.
};

class Error : public std::exception {
 public:
  // what: one sentence without a full stop; where: "file:line", a path or a flag ("" = unknown); hint: what to do next.
  Error(ErrorKind kind, std::string what, std::string where = "", std::string hint = "");

  const char* what() const noexcept override { return full_.c_str(); }
  const std::string& message() const { return message_; }
  const std::string& where() const { return where_; }
  const std::string& hint() const { return hint_; }
  int exit_code() const { return kind_ == ErrorKind::kUsage ? 2 : 3; }

 private:
  ErrorKind kind_;
  std::string message_, where_, hint_, full_;
};

inline Error usage_error(std::string what, std::string where = "", std::string hint = "") {
  return Error(ErrorKind::kUsage, std::move(what), std::move(where), std::move(hint));
}
inline Error environment_error(std::string what, std::string where = "", std::string hint = "") {
  return Error(ErrorKind::kEnvironment, std::move(what), std::move(where), std::move(hint));
}

}  // namespace tritonrl
