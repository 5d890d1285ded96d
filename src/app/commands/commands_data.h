// SPDX-License-Identifier: Apache-2.0
// The subcommands of `data` that bring tasks in and look them over. Each adds itself to the parser.
#pragma once

#include <string>

#include "app/commands/commands.h"
#include "data/tasks/task.h"
#include "verify/verifier.h"

namespace tritonrl {

void add_data_import(CLI::App& data, Run& run);
void add_data_label(CLI::App& data, Run& run);
void add_data_check_split(CLI::App& data, Run& run);
void add_data_variants(CLI::App& data, Run& run);
void add_data_lint(CLI::App& data, Run& run);

// Fills task->recorded. "" or why the reference cannot be recorded. Throws Error (environment) when the worker is lost
// twice. Blocks. Thread rule: any thread.
std::string record_task(Verifier& verifier, Task* task);

}  // namespace tritonrl
