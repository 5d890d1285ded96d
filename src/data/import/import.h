// SPDX-License-Identifier: Apache-2.0
// Importers: rows of other people's data -> tasks, or why not. Pure functions over one row; import_job.h runs them.
//
// Schemas are in docs/data.md. Licence and origin of a row stay with its task.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "data/import/row_source.h"
#include "data/tasks/task.h"

namespace tritonrl {

struct Converted {
  std::optional<Task> task;
  std::string id;  // Of the row, where it is known.
  std::string
      kind;  // Why it is rejected: "bad_row", "too_large", "syntax_error", "no_class", "no_kernel", "arguments".
  std::string reason;  // The same for people.
};
using Converter = std::function<Converted(const Row& row)>;

// {"level", "problem_id", "name", "code"}, all four levels. Ids are "kernelbench/2/080"; licence MIT.
Converted convert_kernelbench(const Row& row);

// GPUMODE/KernelBook: "entry_point" is the class that becomes Model, "python_code" its file, "triton_code" the solution
// whose class ENTRY_POINTNew becomes ModelNew; "repo_name", "licenses", "sha", "repo_link" and "uuid" are kept where
// they are there. get_init_inputs() of these files gives [[positional], {keyword: value}]; it is rewritten to the plain
// list that a task has, in the order of the class's __init__. A solution that calls extern_kernels gets the flag of
// that name. Levels are left at 1: recording the task sets them.
Converted convert_kernelbook(const Row& row);

// Anyone's own pairs: "source" (or "reference") and optionally "solution" (or "triton"), "id", "level", "name",
// "origin", "licence" (or "license"), "tiny". Without an id: "import/" and a hash of the source.
Converted convert_pair(const Row& row);

// The class `entry_point` of a Python file becomes `name`, another class of that name steps aside. Attributes, keywords
// and texts stay as they are.
std::string rename_class(const std::string& source, const std::string& entry_point, const std::string& name);

// Rewrites `return [[...], {...}]` of get_init_inputs() to one list in the order of __init__ of the class Model.
// "" and *problem set where that cannot be done without running the code.
std::string plain_init_inputs(const std::string& source, std::string* problem);

}  // namespace tritonrl
