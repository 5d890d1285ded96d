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

// Config files and --set, as every command that takes a config has them.
struct ConfigArguments {
  std::vector<std::string> files, sets;
  void add_to(CLI::App& command, bool required);
};

}  // namespace tritonrl
