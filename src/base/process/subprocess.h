// SPDX-License-Identifier: Apache-2.0
// Subprocess: a program whose standard output this one reads, above all a Python script of tools/.
//
// What it prints to standard error goes where ours does. Thread rule: one thread at a time.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tritonrl {

class Subprocess {
 public:
  // Starts command[0] (a path); `input` is all that its standard input holds. Throws Error (environment).
  explicit Subprocess(std::vector<std::string> command, std::string_view input = "");
  ~Subprocess();  // Kills it where it still runs.
  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;

  // All of its output from here on. Throws Error (environment) when reading fails.
  std::string read_all();
  // The descriptor its output comes from, for somebody else to read and to close.
  int take_output();
  // Waits for its end: its exit code, or minus the signal that ended it.
  int wait();

 private:
  pid_t process_ = -1;
  int output_ = -1;
};

// tools/SCRIPT with these arguments, by the Python of tools/setup.sh, which sees nothing of the user's own packages.
std::vector<std::string> python_command(const std::string& script, const std::vector<std::string>& arguments = {});

// The folder that holds a package which tools/setup.sh unpacks without installing it. Throws Error (environment) where
// it is missing; `instead`: what else the user may do.
std::filesystem::path unpacked_package(const std::string& name, const std::string& instead = "");

}  // namespace tritonrl
