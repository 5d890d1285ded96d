// SPDX-License-Identifier: Apache-2.0
#include "verify/trace/call_rules.h"

#include <algorithm>
#include <functional>
#include <set>

#include "base/text.h"
#include "verify/trace/init_values.h"

namespace tritonrl {
namespace {

// "aten.mul.Tensor" -> "mul".
std::string base_name(const std::string& op) {
  auto parts = split(op, '.');
  return parts.size() >= 2 && parts[0] == "aten" ? parts[1] : "";
}

const std::set<std::string>& plumbing() {
  static const std::set<std::string> names = {
      // Allocation and constant filling.
      "empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "zeros", "zeros_like",
      "new_zeros", "ones", "ones_like", "new_ones", "full", "full_like", "new_full", "scalar_tensor", "arange", "fill",
      "fill_", "zero_", "zero",
      // Views.
      "view", "_unsafe_view", "reshape", "_reshape_alias", "view_as", "reshape_as", "expand", "expand_as",
      "broadcast_to", "permute", "transpose", "transpose_", "t", "t_", "mT", "numpy_T", "swapaxes", "swapdims",
      "movedim", "moveaxis", "squeeze", "squeeze_", "unsqueeze", "unsqueeze_", "flatten", "unflatten", "ravel", "slice",
      "select", "narrow", "as_strided", "detach", "detach_", "alias", "unbind", "split", "split_with_sizes", "chunk",
      "diagonal", "unfold", "view_as_real", "lift", "lift_fresh", "set_", "resize_", "resize_as_", "data", "atleast_1d",
      "atleast_2d", "atleast_3d",
      // Copies, casts and layout.
      "copy_", "copy", "clone", "contiguous", "_to_copy", "to", "type_as", "cat", "concat", "stack", "constant_pad_nd",
      "pad", "repeat", "tile", "flip", "roll", "slice_scatter", "select_scatter", "cuda", "half", "float", "bfloat16"};
  return names;
}

// Writes the whole of its first argument, whatever was there before.
bool overwrites(const std::string& op) {
  std::string name = base_name(op);
  return name == "copy_" || name == "fill_" || name == "zero_";
}

// Takes its arguments' shapes and not their data.
bool allocates(const std::string& op) {
  std::string name = base_name(op);
  return name.rfind("new_", 0) == 0 || name.rfind("empty", 0) == 0 || name.rfind("zeros", 0) == 0 ||
         name.rfind("ones", 0) == 0 || name.rfind("full", 0) == 0;
}

bool covers(const TraceValue& value, int64_t storage_bytes) {
  int64_t n = item_size(value.dtype), next = 1;
  std::vector<std::pair<int64_t, int64_t>> dims;  // Stride, extent.
  for (size_t d = 0; d < value.shape.size(); ++d) {
    n *= value.shape[d];
    if (value.shape[d] > 1) dims.emplace_back(value.stride[d], value.shape[d]);
  }
  std::ranges::sort(dims);
  for (const auto& [stride, extent] : dims) {  // No gaps, and no element counted twice.
    if (stride != next) return false;
    next *= extent;
  }
  return value.offset == 0 && n >= storage_bytes;
}

bool in_place(const std::string& op) { return base_name(op).ends_with('_'); }
bool takes_shapes_only(const std::string& op) { return allocates(op) || base_name(op).ends_with("_like"); }

// Largest extents seen.
std::map<int64_t, int64_t> sizes_of_storages(const CaseTrace& trace) {
  std::map<int64_t, int64_t> bytes;
  for (const TraceValue& value : trace.values) {
    int64_t& size = bytes[value.storage];
    size = std::max(size, value.end_byte());
  }
  return bytes;
}

// Random numbers.
bool draws(const std::string& op) {
  std::string name = base_name(op);
  for (const char* part :
       {"rand", "normal", "uniform", "bernoulli", "exponential", "cauchy", "geometric", "multinomial"}) {
    if (name.find(part) != std::string::npos) return true;
  }
  return false;
}

// Makes a tensor of one number.
bool fills(const std::string& op) {
  static const std::set<std::string> names = {"zeros",     "ones",      "full",      "zeros_like",
                                              "ones_like", "full_like", "new_zeros", "new_ones",
                                              "new_full",  "fill_",     "zero_",     "fill"};
  return names.count(base_name(op)) > 0;
}

// An empty grid computes nothing; an autotuner may choose any of its configurations.
bool may_be_empty(const TraceStep& step) {
  return std::any_of(step.choices.begin(), step.choices.end(), [](const TraceChoice& choice) {
    return std::count(choice.grid.begin(), choice.grid.end(), 0) > 0;
  });
}

// Does it cut numbers with a fraction down to whole ones, or whole ones down to a byte, a truth value?
bool truncates(const CaseTrace& trace, const TraceStep& step) {
  if (step.is_launch || step.outs.empty() || takes_shapes_only(step.op) || !is_plumbing(step.op)) return false;
  auto dtype = [&](int64_t id) { return trace.values.at(static_cast<size_t>(id)).dtype; };
  Dtype result = dtype(step.outs[0]);
  if (is_floating(result)) return false;
  return std::ranges::any_of(step.reads, [&](int64_t id) {
    bool narrower = item_size(result) < 4 && (item_size(dtype(id)) > item_size(result) || result == Dtype::kBool);
    return dtype(id) != result && (is_floating(dtype(id)) ? step.op != "aten.view.dtype" : narrower);
  });
}

bool truncates(const CaseTrace& trace) {
  const size_t forward = trace.init_steps + trace.input_steps;
  return std::any_of(trace.tape.begin() + static_cast<ptrdiff_t>(forward), trace.tape.end(),
                     [&](const TraceStep& step) { return !step.is_launch && truncates(trace, step); });
}

}  // namespace

bool is_plumbing(const std::string& op) { return plumbing().count(base_name(op)) > 0; }

namespace {

// By step: host arithmetic, which reckons with numbers that depend on nothing that was given, and whose result gets
// nowhere but into the host code itself. What computes on an input counts even where nobody takes the result: a kernel
// might find it in memory.
std::vector<bool> host_arithmetic(const CaseTrace& trace) {
  auto storage_of = [&](int64_t id) { return trace.values.at(static_cast<size_t>(id)).storage; };
  std::set<int64_t> wanted, given;
  visit_leaves(trace.outputs, [&](int64_t id) { wanted.insert(storage_of(id)); });
  for (const TraceInput& input : trace.inputs) {
    if (input.value >= 0) given.insert(storage_of(input.value));
  }
  for (const TraceParameter& parameter : trace.parameters) {
    if (parameter.name.rfind("constant:", 0) != 0 || !parameter.has_bytes) given.insert(storage_of(parameter.value));
  }
  wanted.insert(given.begin(), given.end());
  const size_t steps = trace.tape.size();
  std::vector<bool> depends(steps, false), used(steps, false), out(steps, false);
  auto any = [&](const std::vector<int64_t>& ids, const std::set<int64_t>& storages) {
    return std::any_of(ids.begin(), ids.end(), [&](int64_t id) { return storages.count(storage_of(id)) > 0; });
  };
  for (size_t at = 0; at < steps; ++at) {
    const TraceStep& step = trace.tape[at];
    depends[at] = at < trace.init_steps + trace.input_steps || step.is_launch || any(step.reads, given);
    if (!depends[at]) continue;
    for (int64_t id : step.is_launch ? step.reads : step.outs) given.insert(storage_of(id));
  }
  for (size_t at = steps; at-- > 0;) {
    const TraceStep& step = trace.tape[at];
    used[at] = step.is_launch || step.outs.empty() || any(step.outs, wanted);
    if (!used[at]) continue;
    for (int64_t id : step.reads) wanted.insert(storage_of(id));
  }
  for (size_t at = 0; at < steps; ++at) out[at] = !depends[at] && !used[at];
  return out;
}

// What a weight is made of: the operators between random numbers and it, plumbing left out, each as often as it was
// used, and how many draws are in it.
struct Making {
  std::map<std::string, size_t> operators;
  size_t draws = 0;
  auto operator<=>(const Making&) const = default;

  void join(const Making& other) {  // Saturating: numbers that only a forger reaches are all alike.
    constexpr size_t kMany = 1000;
    for (const auto& [op, times] : other.operators) operators[op] = std::min(operators[op] + times, kMany);
    draws = std::min(draws + other.draws, kMany);
  }
};
using Made = std::map<int64_t, std::set<Making>>;  // By storage. Packing several weights leaves each what it was.
constexpr size_t kMostMakings = 64;                // Of one storage.

Making joined(const std::set<Making>& all) {
  Making one;
  for (const Making& each : all) one.join(each);
  return one;
}

// Does it move numbers, and compute none? `drawn(id)`: is a value made of weights? Which numbers are moved may not be.
bool only_moves(const CaseTrace& trace, const TraceStep& step, const std::function<bool(int64_t)>& drawn) {
  static const std::set<std::string> moves = {"index",          "index_select",
                                              "gather",         "take",
                                              "take_along_dim", "index_put",
                                              "index_put_",     "index_copy",
                                              "index_copy_",    "scatter",
                                              "scatter_",       "where",
                                              "masked_fill",    "masked_fill_",
                                              "tril",           "tril_",
                                              "triu",           "triu_",
                                              "rot90",          "block_diag",
                                              "diag_embed",     "diagonal_copy",
                                              "pixel_shuffle",  "pixel_unshuffle",
                                              "permute_copy",   "t_copy",
                                              "narrow_copy",    "transpose_copy",
                                              "view_copy",      "expand_copy",
                                              "im2col",         "slice_copy",
                                              "_foreach_copy_", "repeat_interleave",
                                              "channel_shuffle"};
  if (!is_plumbing(step.op) && !moves.count(base_name(step.op))) return false;
  if (step.op == "aten.view.dtype" || step.op.find("reduce") != std::string::npos || truncates(trace, step))
    return false;
  bool accumulates = std::ranges::any_of(
      step.args, [](const TraceArg& arg) { return arg.kind == TraceArg::Kind::kBool && arg.number != 0; });
  if (accumulates && base_name(step.op).starts_with("index_put")) return false;
  return std::ranges::none_of(step.reads, [&](int64_t id) {
    return !is_floating(trace.values.at(static_cast<size_t>(id)).dtype) && drawn(id);
  });
}

// By storage: is it a constant, one number everywhere?
std::set<int64_t> constants_of_init(const CaseTrace& trace) {
  std::set<int64_t> constant;
  auto storage_of = [&](int64_t id) { return trace.values.at(static_cast<size_t>(id)).storage; };
  for (size_t at = 0; at < trace.init_steps; ++at) {
    const TraceStep& step = trace.tape[at];
    bool stays = fills(step.op) || (is_plumbing(step.op) && std::ranges::all_of(step.reads, [&](int64_t id) {
                                      return constant.count(storage_of(id)) > 0;
                                    }));
    for (int64_t id : step.outs) stays ? void(constant.insert(storage_of(id))) : void(constant.erase(storage_of(id)));
  }
  return constant;
}

// `like`: shapes of constants that are weights. They are drawn, too: the judge moves them.
Made made_of_weights(const CaseTrace& trace, const std::set<std::vector<int64_t>>& like) {
  Made made;
  std::map<int64_t, int64_t> storage_bytes = sizes_of_storages(trace);
  auto value_of = [&](int64_t id) -> const TraceValue& { return trace.values.at(static_cast<size_t>(id)); };
  auto is_made = [&](int64_t id) { return made.count(value_of(id).storage) > 0; };
  for (size_t at = 0; at < trace.init_steps; ++at) {
    const TraceStep& step = trace.tape[at];
    if (step.is_launch) continue;
    const bool moves = only_moves(trace, step, is_made);
    bool drawn = draws(step.op);
    size_t first_source = takes_shapes_only(step.op) ? step.reads.size() : 0;
    if (first_source < step.reads.size() && (overwrites(step.op) || (drawn && in_place(step.op)))) {
      const TraceValue& target = value_of(step.reads[0]);
      if (covers(target, storage_bytes[target.storage])) {
        made.erase(target.storage);
        first_source = 1;
      }
    }
    if (fills(step.op) && !step.outs.empty()) drawn |= like.count(value_of(step.outs[0]).shape) > 0;
    std::set<Making> sources;
    Making one;  // Of all that is read, as often as it is.
    for (size_t i = first_source; i < step.reads.size(); ++i) {
      auto of = made.find(value_of(step.reads[i]).storage);
      if (of == made.end()) continue;
      for (const Making& source : of->second) one.join(source);
      sources.insert(of->second.begin(), of->second.end());
    }
    if (sources.empty() && !drawn) continue;
    if (!sources.empty() && !moves) {
      ++one.operators[step.op];
      sources = {one};
    }
    if (drawn && sources.empty()) sources.insert({{}, 1});
    std::set<int64_t> targets;
    for (int64_t id : step.outs) targets.insert(value_of(id).storage);
    for (int64_t id : written_by(step)) targets.insert(value_of(id).storage);
    for (int64_t storage : targets) {
      std::set<Making>& of = made[storage];
      of.insert(sources.begin(), sources.end());
      if (of.size() > kMostMakings) of = {joined(of)};
    }
  }
  return made;
}

// Does the task make a weight of its own by all that one was made by?
bool known_to(const std::set<Making>& task, const Making& own) {
  if (own.operators.empty()) return true;
  return std::ranges::any_of(task, [&](const Making& theirs) {
    return own.draws <= std::max<size_t>(theirs.draws, 1) && std::ranges::all_of(own.operators, [&](const auto& used) {
             auto there = theirs.operators.find(used.first);
             return there != theirs.operators.end() && used.second <= there->second;
           });
  });
}

// What forward() and the parameters have of it.
std::set<Making> makings_in_use(const CaseTrace& trace, const Made& made) {
  std::set<Making> found;
  auto use = [&](int64_t id) {
    auto of = made.find(trace.values.at(static_cast<size_t>(id)).storage);
    if (of != made.end()) found.insert(of->second.begin(), of->second.end());
  };
  for (const TraceParameter& parameter : trace.parameters) use(parameter.value);
  for (size_t at = trace.init_steps + trace.input_steps; at < trace.tape.size(); ++at) {
    std::ranges::for_each(trace.tape[at].reads, use);
  }
  return found;
}

std::set<std::string> computed_in_init(const CaseTrace& trace, const CaseTrace* reference) {
  std::set<std::string> found;
  if (!reference) return found;
  auto value_of = [](const CaseTrace& of, int64_t id) -> const TraceValue& {
    return of.values.at(static_cast<size_t>(id));
  };
  std::set<std::vector<int64_t>> like;
  const std::set<int64_t> constant = constants_of_init(*reference);
  for (const TraceParameter& theirs : reference->parameters) {
    const TraceValue& weight = value_of(*reference, theirs.value);
    if (constant.count(weight.storage) && is_floating(weight.dtype)) like.insert(weight.shape);
  }
  const std::set<Making> task = makings_in_use(*reference, made_of_weights(*reference, like));
  Made made = made_of_weights(trace, like);
  std::map<int64_t, int64_t> storage_bytes = sizes_of_storages(trace);
  for (const TraceParameter& own : trace.parameters) {  // These get the task's values, however they were made.
    const TraceValue& mine = value_of(trace, own.value);
    if (is_the_tasks(trace, own, *reference) && covers(mine, storage_bytes[mine.storage])) made.erase(mine.storage);
  }
  auto use = [&](int64_t id) {
    auto of = made.find(value_of(trace, id).storage);
    if (of == made.end()) return;
    for (const Making& one : of->second) {
      if (known_to(task, one)) continue;
      for (const auto& [op, times] : one.operators) found.insert(op);
    }
  };
  for (size_t at = trace.init_steps + trace.input_steps; at < trace.tape.size(); ++at) {
    std::ranges::for_each(trace.tape[at].reads, use);
  }
  visit_leaves(trace.outputs, use);
  return found;
}

}  // namespace

CallFinding check_calls(const CaseTrace& trace, CallRules rules, const CaseTrace* reference) {
  CallFinding found;
  std::set<std::string> delegated;
  std::set<int64_t> given;    // Storages that are there before forward().
  std::set<int64_t> reached;  // Storages a launch may have written, or data derived from them.
  std::map<int64_t, int64_t> storage_bytes = sizes_of_storages(trace);
  auto storage_of = [&](int64_t id) { return trace.values.at(static_cast<size_t>(id)).storage; };
  for (const TraceInput& input : trace.inputs) {
    if (input.value >= 0) given.insert(storage_of(input.value));
  }
  for (const TraceParameter& parameter : trace.parameters) given.insert(storage_of(parameter.value));

  const size_t forward = trace.init_steps + trace.input_steps;
  const std::vector<bool> on_host = host_arithmetic(trace);
  const bool may_not_truncate = reference && !truncates(*reference);
  bool early_launch = false, any_launch = false, only_empty = true;
  for (size_t at = 0; at < trace.tape.size(); ++at) {
    const TraceStep& step = trace.tape[at];
    if (at < forward) {
      early_launch |= step.is_launch;
      for (int64_t id : step.outs) given.insert(storage_of(id));
      continue;
    }
    if (step.is_launch) {
      any_launch = true;
      if (may_be_empty(step)) continue;
      only_empty = false;
      for (int64_t id : step.reads) reached.insert(storage_of(id));
      continue;
    }
    const bool cuts = may_not_truncate && truncates(trace, step);
    if ((!is_plumbing(step.op) || cuts) && !on_host[at]) delegated.insert(step.op);
    size_t first_source = 0;
    if (overwrites(step.op) && !step.reads.empty()) {
      first_source = 1;
      const TraceValue& target = trace.values.at(static_cast<size_t>(step.reads[0]));
      if (covers(target, storage_bytes[target.storage])) reached.erase(target.storage);
    }
    if (allocates(step.op)) continue;
    bool flows = false;
    for (size_t i = first_source; i < step.reads.size(); ++i) flows |= reached.count(storage_of(step.reads[i])) > 0;
    if (!flows) continue;
    for (int64_t id : step.outs) reached.insert(storage_of(id));
  }
  found.delegated_ops.assign(delegated.begin(), delegated.end());

  bool reaches = false, untouched_input = false;
  visit_leaves(trace.outputs, [&](int64_t id) {
    bool hit = reached.count(storage_of(id)) > 0;
    reaches |= hit;
    untouched_input |= !hit && given.count(storage_of(id)) > 0;
  });

  if (early_launch) {
    found.finding = Rule::kLaunchInInit;
  } else if (!any_launch) {
    found.finding = Rule::kNoLaunch;
  } else if (only_empty) {
    found.finding = Rule::kEmptyGrid;
  } else if (rules == CallRules::kStrict && !delegated.empty()) {
    found.finding = Rule::kLibraryCalls;
    found.finding.told.operations.assign(delegated.begin(), delegated.end());
  } else if (auto computed = computed_in_init(trace, reference); rules == CallRules::kStrict && !computed.empty()) {
    found.finding = Rule::kWeightsComputed;
    found.finding.told.operations.assign(computed.begin(), computed.end());
  } else if (!reaches) {
    found.finding = Rule::kOutputNotReached;
  } else if (untouched_input) {
    found.finding = Rule::kOutputIsInput;
  }
  return found;
}

}  // namespace tritonrl
