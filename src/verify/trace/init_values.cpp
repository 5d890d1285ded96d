// SPDX-License-Identifier: Apache-2.0
#include "verify/trace/init_values.h"

#include <algorithm>
#include <set>

#include "base/text.h"

namespace tritonrl {
namespace {

int64_t storage_of(const CaseTrace& trace, int64_t id) { return trace.values.at(static_cast<size_t>(id)).storage; }

}  // namespace

bool may_write(const std::string& op) {
  auto parts = split(op, '.');
  if (parts.size() < 3) return false;
  const std::string &name = parts[1], &overload = parts[2];
  return name.ends_with('_') || name.find("_norm") != std::string::npos || name.find("foreach") != std::string::npos ||
         overload.find("out") != std::string::npos;
}

InitValues init_values(const CaseTrace& trace) {
  InitValues found;
  std::map<int64_t, size_t> written;  // Storage -> last step that writes to it.
  for (size_t at = 0; at < trace.init_steps; ++at) {
    const TraceStep& step = trace.tape[at];
    for (int64_t id : step.outs) {
      found.whole.emplace(id, at);
      written.emplace(storage_of(trace, id), at);
    }
    if (!may_write(step.op)) continue;
    for (int64_t id : step.reads) written[storage_of(trace, id)] = at;
  }
  for (auto& [id, at] : found.whole) at = std::max(at, written[storage_of(trace, id)]);
  std::set<int64_t> parameters, used;
  for (const TraceParameter& parameter : trace.parameters) parameters.insert(parameter.value);
  auto use = [&](int64_t id) {
    if (found.whole.count(id) && !parameters.count(id)) used.insert(id);
  };
  for (size_t at = trace.init_steps; at < trace.tape.size(); ++at) {
    std::ranges::for_each(trace.tape[at].reads, use);
    std::ranges::for_each(trace.tape[at].outs, use);
  }
  visit_leaves(trace.outputs, use);
  found.used.assign(used.begin(), used.end());
  return found;
}

std::vector<int64_t> like_parameters(const CaseTrace& trace, const InitValues& made, const CaseTrace& reference) {
  constexpr size_t kMost = 64;
  std::set<int64_t> seen;  // Storages.
  for (const TraceParameter& parameter : trace.parameters) seen.insert(storage_of(trace, parameter.value));
  std::vector<int64_t> found;
  for (const auto& [id, at] : made.whole) {
    const TraceValue& value = trace.values[static_cast<size_t>(id)];
    bool alike = value.offset == 0 && std::ranges::any_of(reference.parameters, [&](const TraceParameter& theirs) {
                   const TraceValue& weight = reference.values[static_cast<size_t>(theirs.value)];
                   return weight.shape == value.shape && weight.dtype == value.dtype && weight.stride == value.stride;
                 });
    if (alike && found.size() < kMost && seen.insert(value.storage).second) found.push_back(id);
  }
  return found;
}

bool makes_more_of(const CaseTrace& trace, const InitValues& made, const std::vector<int64_t>& values) {
  std::map<int64_t, size_t> complete;  // Storage -> step.
  for (int64_t id : values) {
    auto at = made.whole.find(id);
    if (at != made.whole.end()) complete[storage_of(trace, id)] = at->second;
  }
  for (size_t at = 0; at < trace.init_steps; ++at) {
    const TraceStep& step = trace.tape[at];
    for (int64_t id : step.reads) {
      auto from = complete.find(storage_of(trace, id));
      if (from == complete.end() || at <= from->second) continue;
      if (std::ranges::any_of(step.outs, [&](int64_t out) { return storage_of(trace, out) != from->first; }))
        return true;
    }
  }
  return false;
}

}  // namespace tritonrl
