// SPDX-License-Identifier: Apache-2.0
// Task: one problem for the policy, a PyTorch module to be rewritten with Triton kernels.
//
// The source is KernelBench-style Python: a class `Model(nn.Module)`, `get_inputs()` (list of tensors on the CPU) and
// `get_init_inputs()` (list of constructor arguments). Sizes are module-level integer constants in upper case, so that
// smaller variants of a task can be made by rebinding them jointly.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/files/json.h"

namespace tritonrl {

// What the trace of a task's reference says (verify/trace/trace_graph.h). Nothing is set when it was never recorded.
struct Recorded {
  int64_t compute_ops = 0;  // Library calls of forward() that compute: no allocation, view, copy, cast or layout.
  int level = 0;            // By the rule of docs/data.md; 0 = not recorded.
  std::string graph;        // Content hash of the operator graph, sizes left out.
  std::string loose_graph;  // The same with constants left out as well.
  std::string outline;      // graphs::outline() of it; "calls:" and a hash of its operators' names where there is no
                            // such graph.
  std::vector<std::string> operators = {};  // Of forward(), sorted: graphs::outline_operators() of it, or the names of
                                            // its calls.

  bool operator==(const Recorded&) const = default;
  template <class Self, class V>
  static void json_fields(Self& self, V& v) {
    v("compute_ops", self.compute_ops);
    v("level", self.level);
    v("graph", self.graph);
    v("loose_graph", self.loose_graph);
    v.optional("outline", self.outline);
    v.optional("operators", self.operators);
  }
  std::string problem() const;
};

struct Task {
  std::string id;          // Unique within a task set, e.g. "synth/1/000042".
  int level = 1;           // 1 = one operation, 2 = a fusion of several.
  std::string name;        // Short human name, e.g. "gelu_mul_rowsum".
  std::string source;      // The reference module.
  std::string solution;    // A verified Triton solution (a whole Python file with ModelNew), or "" when there is none.
  std::string graph_hash;  // Content hash of the normalised operation graph; splits are disjoint by it. "" = not known.
  std::map<std::string, int64_t>
      tiny;  // Rebinding of size constants for the tiny run, e.g. {"N": 5}; empty = none known.
  std::map<std::string, int64_t> larger;  // The same about half as large again; empty = none known.
  Recorded recorded;
  std::vector<std::string> flags;  // Why it should not be trained on, e.g. "constant", "extern_kernels"; sorted.
  std::string origin;              // Where it comes from, e.g. "synth seed 7", "KernelBench level 2".
  std::string licence;             // SPDX identifier.
  int64_t difficulty = 0;          // Exact number of compute nodes of its graph; 0 = not known.

  template <class Self, class V>
  static void json_fields(Self& self, V& v) {
    v("id", self.id);
    v("level", self.level);
    v.lenient("name", self.name);
    v("source", self.source);
    v.lenient("solution", self.solution);
    v.lenient("graph_hash", self.graph_hash);
    v.lenient("tiny", self.tiny);
    v.lenient("origin", self.origin);
    v.lenient("licence", self.licence);
    // Left out where there is nothing to say, so that files of older versions and of this one look alike.
    v.optional("larger", self.larger);
    v.optional("flags", self.flags);
    v.optional("recorded", self.recorded);
    v.optional("difficulty", self.difficulty);
  }
  std::string problem() const;
};

Json to_json(const Task& task);
// `where` ("file:line") goes into errors. Throws Error (usage) for a missing or mistyped field, or a source that has no
// `class Model`, `get_inputs` or `get_init_inputs`.
Task task_from_json(const Json& json, const std::string& where);
// Wraps a plain Python file as a task (id = file name). Throws Error as above.
Task task_from_python(const std::filesystem::path& path);

// Task sets are JSON-lines files, one task a line. Ids must be unique. Throws Error with file:line.
std::vector<Task> load_tasks(const std::filesystem::path& path);
void save_tasks(const std::filesystem::path& path, const std::vector<Task>& tasks);

}  // namespace tritonrl
