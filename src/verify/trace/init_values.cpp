// SPDX-License-Identifier: Apache-2.0
#include "verify/trace/init_values.h"

#include <algorithm>
#include <set>

#include "base/text.h"

namespace tritonrl {
namespace {

int64_t storage_of(const CaseTrace& trace, int64_t id) { return trace.values.at(static_cast<size_t>(id)).storage; }

}  // namespace

std::vector<int64_t> written_by(const TraceStep& step) {
  auto parts = split(step.op, '.');
  if (step.is_launch || step.reads.empty() || parts.size() < 3) return {};
  const std::string &name = parts[1], &overload = parts[2];
  auto named = [&](const char* part) { return name.find(part) != std::string::npos; };
  bool elsewhere = named("batch_norm") || named("instance_norm") || named("foreach") || named("_helper") ||
                   named("moving_avg") || named("_fused_") || named("_amp_") || named("rrelu_with_noise") ||
                   overload.find("out") != std::string::npos;
  if (elsewhere) return step.reads;
  return name.ends_with('_') || name == "set_data" ? std::vector{step.reads[0]} : std::vector<int64_t>();
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
    for (int64_t id : written_by(step)) written[storage_of(trace, id)] = at;
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

int64_t cast_from(const CaseTrace& trace, int64_t value) {
  auto value_of = [&](int64_t id) -> const TraceValue& { return trace.values[static_cast<size_t>(id)]; };
  for (size_t at = 0; at < trace.init_steps; ++at) {
    const TraceStep& step = trace.tape[at];
    if (!step.op.starts_with("aten._to_copy.") || step.reads.size() != 1 || std::ranges::count(step.outs, value) == 0) {
      continue;
    }
    const TraceValue &from = value_of(step.reads[0]), &to = value_of(value);
    if (is_floating(from.dtype) && is_floating(to.dtype) && from.shape == to.shape) return step.reads[0];
  }
  return -1;
}

bool is_the_tasks(const CaseTrace& trace, const TraceParameter& own, const CaseTrace& reference) {
  const TraceValue& mine = trace.values[static_cast<size_t>(own.value)];
  return std::ranges::any_of(reference.parameters, [&](const TraceParameter& theirs) {
    const TraceValue& weight = reference.values[static_cast<size_t>(theirs.value)];
    return theirs.name == own.name && weight.shape == mine.shape && weight.dtype == mine.dtype;
  });
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
                   bool alike = weight.dtype == value.dtype || (is_floating(weight.dtype) && is_floating(value.dtype));
                   return alike && weight.shape == value.shape && weight.stride == value.stride;
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
      auto other = [&](int64_t out) {
        return storage_of(trace, out) != from->first && std::ranges::count(values, out) == 0;
      };
      if (std::ranges::any_of(step.outs, other)) return true;
    }
  }
  return false;
}

}  // namespace tritonrl
