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
void add_data_solve(CLI::App& data, Run& run);
void add_data_lint(CLI::App& data, Run& run);

// A verifier with the config's verify section; `workers` 0 = as that says.
std::unique_ptr<Verifier> open_verifier(const ConfigArguments& config, int64_t workers = 0);
// Calls fn(i) for each of so many tasks, as many at a time as the verifier has workers, with a bar. Throws Interrupted
// when asked to stop, and what fn throws.
void for_each_task(const Verifier& verifier, const std::string& what, size_t count,
                   const std::function<void(size_t)>& fn);

// Fills task->recorded. "" or why the reference cannot be recorded. Throws Error (environment) when the worker is lost
// twice. Blocks. Thread rule: any thread.
std::string record_task(Verifier& verifier, Task* task);

}  // namespace tritonrl
