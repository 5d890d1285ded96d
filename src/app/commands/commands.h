// SPDX-License-Identifier: Apache-2.0
// The commands of the program, in the order of --help. Each adds itself to the parser and sets `run` when it is chosen.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace tritonrl {

// What the chosen command will do; returns the exit code: 0 done, 1 ran but a check or target was not met.
using Run = std::function<int()>;

void add_doctor(CLI::App& app, Run& run);
void add_data(CLI::App& app, Run& run);
void add_data_synth(CLI::App& data, Run& run);  // Parts of data.
void add_data_show(CLI::App& data, Run& run);
void add_model(CLI::App& app, Run& run);
void add_train(CLI::App& app, Run& run, const std::string& command_line);
void add_ablate(CLI::App& app, Run& run);
void add_verify(CLI::App& app, Run& run);
void add_eval(CLI::App& app, Run& run);
void add_report(CLI::App& app, Run& run);

struct Config;

// Config files, --set and --allow-weaker-sandbox, as every command that takes a config has them.
struct ConfigArguments {
  std::vector<std::string> files, sets;
  bool weaker = false;

  void add_to(CLI::App& command);                                       // The files come without a name.
  void add_named_to(CLI::App& command, const char* counts = "verify");  // ... behind --config: one section counts.
  void add_weaker_to(CLI::App& command);
  Config load() const;  // Throws Error (usage).
};

}  // namespace tritonrl
