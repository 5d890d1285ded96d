// SPDX-License-Identifier: Apache-2.0
#include "verify/trace/trace_flow.h"

#include <algorithm>
#include <vector>

namespace tritonrl {
namespace {

class Flow {
 public:
  explicit Flow(const CaseTrace& trace)
      : trace_(trace),
        defined_(trace.values.size(), false),
        bytes_(trace.values.size(), -1),
        read_in_(trace.values.size(), 0),
        made_in_(trace.values.size(), 0) {}

  void check() {
    const size_t init = trace_.init_steps, forward = init + trace_.input_steps;
    std::vector<bool> made = made_by_steps(forward);
    for (const TraceParameter& parameter : trace_.parameters) {
      if (!made[storage_of(parameter.value)]) give(parameter.value);
    }
    for (size_t at = 0; at < init; ++at) run(at);
    for (const TraceParameter& parameter : trace_.parameters) define(parameter.value);
    for (size_t at = init; at < forward; ++at) run(at);
    for (const TraceInput& input : trace_.inputs) {
      if (input.value < 0) continue;
      made[storage_of(input.value)] ? define(input.value) : give(input.value);
    }
    for (size_t at = forward; at < trace_.tape.size(); ++at) run(at);
    visit_leaves(trace_.outputs, [&](int64_t id) { use(id); });
  }

 private:
  const TraceValue& value(int64_t id) const { return trace_.values[static_cast<size_t>(id)]; }
  size_t storage_of(int64_t id) const { return static_cast<size_t>(value(id).storage); }

  // Storages that a step before `end` brings, by number.
  std::vector<bool> made_by_steps(size_t end) {
    std::vector<bool> made(trace_.values.size(), false);
    for (size_t at = 0; at < end; ++at) {
      for (int64_t id : trace_.tape[at].reads) read_in_[storage_of(id)] = at + 1;
      for (int64_t id : trace_.tape[at].outs) {
        if (read_in_[storage_of(id)] != at + 1) made[storage_of(id)] = true;
      }
    }
    std::fill(read_in_.begin(), read_in_.end(), 0);
    return made;
  }

  void use(int64_t id) const {
    if (!defined_[static_cast<size_t>(id)]) throw Tainted{"a value is used before it exists"};
  }

  void fits(int64_t id) const {
    if (value(id).end_byte() > bytes_[storage_of(id)]) throw Tainted{"a view reaches beyond its memory"};
  }

  // From outside: brings its storage. Two of them may share one (tied weights).
  void give(int64_t id) {
    int64_t& size = bytes_[storage_of(id)];
    size = std::max(size, value(id).end_byte());
    defined_[static_cast<size_t>(id)] = true;
  }

  // Of a section that has just ended.
  void define(int64_t id) {
    if (bytes_[storage_of(id)] < 0) throw Tainted{"a parameter or input that its section does not make"};
    fits(id);
    defined_[static_cast<size_t>(id)] = true;
  }

  // A result is an argument again (in place), a view of an argument's storage, or brings a storage of its own.
  void run(size_t at) {
    const size_t mark = at + 1;
    for (int64_t id : trace_.tape[at].reads) {
      use(id);
      read_in_[storage_of(id)] = mark;
    }
    for (int64_t id : trace_.tape[at].outs) {
      size_t storage = storage_of(id);
      if (bytes_[storage] < 0 || made_in_[storage] == mark) {
        bytes_[storage] = std::max(bytes_[storage], value(id).end_byte());
        made_in_[storage] = mark;
      } else if (read_in_[storage] != mark) {
        throw Tainted{"a step returns memory it was not given"};
      } else {
        fits(id);
      }
    }
    for (int64_t id : trace_.tape[at].outs) defined_[static_cast<size_t>(id)] = true;
  }

  const CaseTrace& trace_;
  std::vector<bool> defined_;              // By value.
  std::vector<int64_t> bytes_;             // By storage; -1: not there yet.
  std::vector<size_t> read_in_, made_in_;  // By storage: 1 + the last step that was given it, that brought it.
};

}  // namespace

void check_flow(const CaseTrace& trace) { Flow(trace).check(); }

}  // namespace tritonrl
