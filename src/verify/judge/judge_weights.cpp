// SPDX-License-Identifier: Apache-2.0
// The judge's candidates: the weights they are run with. See trace/init_values.h.
#include <ATen/ATen.h>

#include <algorithm>
#include <set>
#include <utility>

#include "verify/judge/judge.h"
#include "verify/trace/init_values.h"

namespace tritonrl {

// What is no parameter has its own value, where that is the task's as well; a case's precision need not be its own.
bool Judge::may_be(const Parameter& theirs, const Wanted& wanted) {
  at::ScalarType have = theirs.value.scalar_type(), want = to_torch(wanted.dtype);
  bool alike = have == want || (wanted.name.empty() && at::isFloatingType(have) && at::isFloatingType(want));
  return alike && theirs.value.sizes() == at::IntArrayRef(wanted.shape) && (theirs.moved || !wanted.name.empty());
}

const Judge::Parameter* Judge::match(const Wanted& wanted, ReferenceCase& at, std::set<const Parameter*>* taken,
                                     const at::Tensor* initial) const {
  for (const Parameter& theirs : at.parameters) {
    if (!may_be(theirs, wanted) ||
        !(initial ? !taken->count(&theirs) && same_bits(initial->to(theirs.initial.scalar_type()), theirs.initial)
                  : theirs.name == wanted.name)) {
      continue;
    }
    taken->insert(&theirs);
    return &theirs;
  }
  return nullptr;
}

void Judge::give_weights(const std::string& slot, const CaseTrace& trace, ReferenceCase& at, int64_t weight_seed) {
  std::vector<std::pair<int64_t, at::Tensor>> constants, values;
  for (const TraceParameter& own : trace.parameters) {
    if (!own.has_bytes) continue;
    const TraceValue& value = trace.values[static_cast<size_t>(own.value)];
    constants.emplace_back(own.value, from_bytes(own.initial, value.shape, value.dtype, options_.device));
  }
  push(slot, trace.name, constants);
  auto run_init = [&](const Json& pins) {
    ask({{"do", "init"},
         {"slot", slot},
         {"case", trace.name},
         {"seed", static_cast<uint64_t>(weight_seed)},
         {"pins", pins}});
  };
  if (trace.init_steps > 0) run_init(Json::array());
  std::set<const Parameter*> taken;
  matched_.clear();
  std::vector<const TraceParameter*> rest;
  auto wanted = [&](const TraceParameter& own) -> Wanted {
    const TraceValue& value = trace.values[static_cast<size_t>(own.value)];
    return {own.name, value.shape, value.dtype};
  };
  for (const TraceParameter& own : trace.parameters) {
    const Parameter* theirs = match(wanted(own), at, &taken, nullptr);
    if (!theirs) {
      rest.push_back(&own);
      continue;
    }
    matched_[own.value] = theirs;
    values.emplace_back(own.value, theirs->value);
  }
  // Under another name: recognised by what __init__ made of it, in order. So are weights that are no parameters: of a
  // layer that __init__ made and took apart.
  const InitValues made = init_values(trace);
  auto recognise = [&](int64_t id, const Wanted& what, const at::Tensor& initial) {
    const Parameter* theirs = match(what, at, &taken, &initial);
    if (!theirs) return;
    matched_[id] = theirs;
    if (theirs->moved) values.emplace_back(id, theirs->value.to(to_torch(what.dtype)));
  };
  auto made_there = [&](int64_t id) {
    const TraceValue& value = trace.values[static_cast<size_t>(id)];
    at::Tensor initial = at::empty(value.shape, at::TensorOptions(options_.device).dtype(to_torch(value.dtype)));
    pull(trace.name, "value", id, static_cast<int64_t>(initial.nbytes()),
         [&](int64_t offset, const at::Tensor& chunk) { bytes_of(initial, offset, chunk.numel()).copy_(chunk); });
    return initial;
  };
  for (const TraceParameter* own : rest) {
    auto constant = std::ranges::find(constants, own->value, &std::pair<int64_t, at::Tensor>::first);
    if (constant == constants.end() && !made.whole.count(own->value)) forged("a parameter without a value");
    recognise(own->value, wanted(*own), constant == constants.end() ? made_there(own->value) : constant->second);
  }
  for (int64_t id : like_parameters(trace, made, *at.trace)) {
    const TraceValue& value = trace.values[static_cast<size_t>(id)];
    const Wanted what{"", value.shape, value.dtype};
    bool missing = std::ranges::any_of(
        at.parameters, [&](const Parameter& theirs) { return !taken.count(&theirs) && may_be(theirs, what); });
    if (missing) recognise(id, what, made_there(id));
  }
  for (size_t i = 0, named = values.size(); i < named; ++i) {
    int64_t from = cast_from(trace, values[i].first);
    if (from < 0) continue;
    at::ScalarType dtype = to_torch(trace.values[static_cast<size_t>(from)].dtype);
    values.emplace_back(from, values[i].second.to(dtype));
  }
  push(slot, trace.name, values);
  Json pins = Json::array();
  std::vector<int64_t> given;
  for (const auto& [id, tensor] : values) {
    if (auto at = made.whole.find(id); at != made.whole.end()) {
      pins.push_back({id, at->second});
      given.push_back(id);
    }
  }
  if (makes_more_of(trace, made, given)) run_init(pins);
}

}  // namespace tritonrl
