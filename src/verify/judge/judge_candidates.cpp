// SPDX-License-Identifier: Apache-2.0
// The judge's candidates: what they are given, and what becomes of what they return.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/text.h"
#include "verify/judge/judge.h"
#include "verify/judge/written_elements.h"
#include "verify/trace/must_read.h"

namespace tritonrl {

namespace {

constexpr int64_t kPiece = int64_t{1} << 24;            // Elements of an output that are compared together.
constexpr size_t kMostTensors = (size_t{1} << 30) - 1;  // A message's payload.

struct Output {
  std::vector<int64_t> shape;
  Dtype dtype;
  std::string name = "output";
};

// Leaves aside, what was returned must have the reference's structure.
template <class T>
Finding structure_difference(const Nest<T>& got, const Nest<int64_t>& expected, const std::string& name = "output") {
  Finding found = other_node(got, expected, name);
  for (size_t i = 0; i < got.children.size() && found.passed(); ++i) {
    bool dict = got.kind == Nest<T>::Kind::kDict;
    std::string child = dict ? cat(name, "['", got.keys[i], "']") : cat(name, "[", i, "]");
    found = structure_difference(got.children[i], expected.children[i], child);
  }
  return found;
}

// `feed` gives a judgement the elements of output `index`.
Comparison judge_outputs(const std::vector<Output>& outputs, const std::vector<Expectation>& expected,
                         const std::function<void(size_t index, Judgement& judgement)>& feed,
                         WrittenElements* written = nullptr) {
  Comparison worst;
  CHECK(outputs.size() == expected.size()) << "structures of another size";
  for (size_t i = 0; i < expected.size(); ++i) {
    const Output& got = outputs[i];
    if (got.shape != expected[i].shape()) {
      return {other_form(Rule::kShape, got.name, Form(got.shape), Form(expected[i].shape())), INFINITY};
    }
    Dtype dtype = from_torch(expected[i].dtype());
    if (got.dtype != dtype) {
      return {other_form(Rule::kDtype, got.name, Form(got.dtype), Form(dtype)), INFINITY};
    }
    Judgement judgement(expected[i], got.name);
    feed(i, judgement);
    Comparison one = judgement.finish();
    if (written) {
      written->wrong += judgement.wrong();
      written->all += expected[i].unlike(written->constants);
    }
    if (!one.passed() && worst.passed()) worst.finding = one.finding;
    if (!one.passed() && !written) return one;
    worst.worst = std::max(worst.worst, one.worst);
  }
  return worst;
}

Finding parameter_changed(const std::string& name) {
  Finding found = Rule::kParameterChanged;
  found.told.name = name;
  return found;
}

BlobView view_of(const at::Tensor& tensor) {
  return {from_torch(tensor.scalar_type()), tensor.sizes().vec(),
          std::string_view(static_cast<const char*>(tensor.data_ptr()), tensor.nbytes())};
}

}  // namespace

const CaseTrace& Judge::candidate_trace(const Json& question) const {
  if (!candidate_) throw JudgeFault{"the judge was not given a candidate"};
  std::string name = question.value("calls", "");
  if (name.empty()) name = question.at("case").get<std::string>();
  const CaseTrace* trace = candidate_->find(name);
  if (!trace) forged("the trace lacks a case");
  return *trace;
}

void Judge::give_candidate() {
  if (at_work_->has_candidate) return;
  ask({{"do", "load"}, {"slot", "candidate"}}, candidate_bytes_);
  at_work_->inputs.clear();
  at_work_->has_candidate = at_work_->had_candidates = true;
}

void Judge::give_inputs(const std::string& slot, const CaseTrace& trace, ReferenceCase& at, size_t call) {
  std::vector<std::pair<int64_t, at::Tensor>> values;
  const size_t first = call * at.inputs.size();
  if (trace.inputs.size() < first + at.inputs.size()) forged("another number of inputs");
  for (size_t i = 0; i < at.inputs.size(); ++i) {
    const TraceInput& own = trace.inputs[first + i];
    if ((own.value >= 0) != at.inputs[i].defined()) forged("other inputs");
    if (own.value < 0) continue;
    const TraceValue& value = trace.values[static_cast<size_t>(own.value)];
    if (at.inputs[i].sizes() != at::IntArrayRef(value.shape) || at.inputs[i].scalar_type() != to_torch(value.dtype)) {
      forged("other inputs");
    }
    values.emplace_back(own.value, at.inputs[i]);
  }
  push(slot, trace.name, values);
}

void Judge::give_inputs_once(const CaseTrace& trace, ReferenceCase& at, int64_t seed, const std::string& values) {
  std::string what = cat(trace.name, "|", seed, "|", values);
  if (at_work_->inputs == what) return;
  at_work_->inputs.clear();
  draw_inputs(at, seed, values);
  give_inputs("candidate", trace, at);
  at_work_->inputs = what;
}

Comparison Judge::collect(const CaseTrace& trace, ReferenceCase& at, const Oracle& oracle, bool whole,
                          WrittenElements* written) {
  Finding difference = structure_difference(trace.outputs, at.trace->outputs);
  if (!difference.passed()) return {difference, INFINITY};
  Json metadata = ask({{"do", "outputs"}, {"slot", "candidate"}, {"case", trace.name}}).at("outputs");
  std::vector<Output> outputs;
  for (const Json& one : metadata) {
    auto dtype = dtype_from_string(one.at("dtype").get<std::string>());
    outputs.push_back({one.at("shape").get<std::vector<int64_t>>(), dtype.value()});
  }
  size_t index = 0;
  for_each_leaf(trace.outputs, [&](int64_t, const std::string& path) { outputs.at(index++).name = "output" + path; });
  auto feed = [&](size_t index, Judgement& judgement) {
    const Expectation& expected = oracle.outputs[index];
    auto size = static_cast<int64_t>(c10::elementSize(expected.dtype()));
    pull(trace.name, "output", static_cast<int64_t>(index), expected.numel() * size,
         [&](int64_t offset, const at::Tensor& chunk) {
           if (whole || !judgement.failed()) judgement.add(offset / size, chunk.view(expected.dtype()));
         });
  };
  return judge_outputs(outputs, oracle.outputs, feed, written);
}

bool Judge::keeps_state(const ReferenceCase& at) {
  auto is_input = [&](int64_t id) {
    return std::ranges::any_of(at.trace->inputs, [&](const TraceInput& input) { return input.value == id; });
  };
  return at.changed && !std::ranges::all_of(*at.changed, is_input);
}

Finding Judge::wrong_change(const CaseTrace& trace, const ReferenceCase& at, const std::vector<int64_t>& changed) {
  std::set<int64_t> own(changed.begin(), changed.end());
  auto reference_does = [&](int64_t id) { return at.changed && at.changed->count(id) > 0; };
  for (size_t i = 0; i < trace.inputs.size(); ++i) {
    if (!own.erase(trace.inputs[i].value) || trace.inputs.size() > at.trace->inputs.size()) continue;
    if (reference_does(at.trace->inputs[i].value)) continue;
    return input_changed(static_cast<int64_t>(i));
  }
  for (const auto& [id, parameter] : matched_) {
    if (!own.count(id) || reference_does(parameter->id)) continue;
    return parameter_changed(parameter->name);
  }
  state_[trace.name].insert(own.begin(), own.end());
  return {};
}

Json Judge::reply_to(const Comparison& comparison, const Finding& changed, int64_t damage) {
  bool right = comparison.passed();
  if (right && !changed.passed()) return {{"finding", to_json(changed)}};
  if (right && damage > 0) return {{"finding", to_json(Finding(Rule::kWritesOutside))}};
  Json reply = {{"finding", to_json(comparison.finding)}};
  if (std::isfinite(comparison.worst)) reply["worst"] = comparison.worst;
  return reply;
}

Json Judge::run(const Json& question) {
  if (question.value("additional", false)) {
    std::string why = cannot_do(question);
    if (!why.empty()) return passed({{"skipped", why}});
  }
  ReferenceCase& at = reference(question);
  spent_.mark("reference");
  const Oracle& expected = oracle(question, at);
  spent_.mark("oracle");
  const CaseTrace& trace = candidate_trace(question);
  until_ = now_s() + question.value("deadline_s", kPatience);  // The reference's time is not the candidate's.
  greet();
  give_candidate();
  spent_.mark("load");
  give_weights("candidate", trace, at, question.at("weight_seed").get<int64_t>());
  spent_.mark("weights");
  auto seed = question.at("input_seed").get<int64_t>();
  std::string values = question.value("values", "");
  bool launches = question.value("launches", true);
  auto forward = [&] {
    return ask({{"do", "forward"},
                {"slot", "candidate"},
                {"case", trace.name},
                {"launches", launches},
                {"careful", true},
                {"choices", question.value("choices", Json::array())},
                {"seed", question.at("input_seed")},
                {"poison", question.at("poison")}});
  };
  // Further calls are on a tape of their own, or are the same call again with what it has kept.
  auto earlier = question.value("earlier_seeds", std::vector<int64_t>());
  bool own_tape = !question.value("calls", "").empty();
  for (size_t call = 0; call < earlier.size(); ++call) {
    draw_inputs(at, earlier[call], values);
    give_inputs("candidate", trace, at, own_tape ? call : 0);
    if (!own_tape) forward();
    at_work_->inputs.clear();
  }
  draw_inputs(at, seed, values);
  own_tape ? give_inputs("candidate", trace, at, earlier.size()) : give_inputs_once(trace, at, seed, values);
  std::string given = std::exchange(at_work_->inputs, "");
  spent_.mark("inputs");
  Json done = forward();
  spent_.mark("forward");
  auto written = count_written(*at.trace, launches);
  Comparison comparison = collect(trace, at, expected, /*whole=*/launches || written, written.get());
  spent_.mark("compare");
  Finding changed;
  if (comparison.passed()) {
    changed = wrong_change(trace, at, done.at("changed").get<std::vector<int64_t>>());
  }
  Json reply = reply_to(comparison, changed, done.at("damage").get<int64_t>());
  reply["kept"] = !state_[trace.name].empty() || keeps_state(at);
  if (written && written->all > 0) reply["written"] = written->share();
  bool wrong = !comparison.passed() || !changed.passed() || done.at("damage").get<int64_t>() > 0;
  if (!wrong && at.mutated.empty() && !own_tape) at_work_->inputs = given;
  ask({{"do", "forget"}, {"slot", "candidate"}, {"case", trace.name}});
  spent_.mark("forget");
  return reply;
}

// --- Candidates that are run elsewhere.

Json Judge::inputs(const Json& question, std::string_view tensors) {
  if (question.value("additional", false)) {
    std::string why = cannot_do(question);
    if (!why.empty()) return passed({{"skipped", why}});
  }
  ReferenceCase& at = reference(question);
  spent_.mark("reference");
  oracle(question, at);  // If the reference fails, nobody need be run.
  spent_.mark("oracle");
  PayloadWriter writer;
  std::vector<at::Tensor> alive;
  auto add = [&](const at::Tensor& tensor) {
    alive.push_back(tensor.contiguous());
    return writer.add(view_of(alive.back()));
  };
  std::set<const Parameter*> taken;
  const Json& own = question.at("parameters");
  std::vector<Wanted> wanted;
  std::vector<const Parameter*> matched;
  for (const Json& one : own) {
    auto dtype = dtype_from_string(one.at("dtype").get<std::string>());
    wanted.push_back({one.at("name").get<std::string>(), one.at("shape").get<std::vector<int64_t>>(), dtype.value()});
    matched.push_back(match(wanted.back(), at, &taken, nullptr));
  }
  Json parameters = Json::array(), inputs = Json::array(), names = Json::array();
  for (size_t i = 0; i < wanted.size(); ++i) {
    at::Tensor initial;
    if (!matched[i]) {
      if (!own[i].contains("initial")) forged("a parameter without a value");
      BlobView bytes = tensor_from(own[i]["initial"], tensors);
      initial = from_bytes(bytes.bytes, bytes.shape, bytes.dtype, options_.device);
      matched[i] = match(wanted[i], at, &taken, &initial);
    }
    parameters.push_back({wanted[i].name, add(matched[i] ? matched[i]->value.to(to_torch(wanted[i].dtype)) : initial)});
    names.push_back(matched[i] ? Json(matched[i]->name) : Json());
  }
  auto seeds = question.value("earlier_seeds", std::vector<int64_t>());
  seeds.push_back(question.at("input_seed").get<int64_t>());
  for (int64_t seed : seeds) {
    draw_inputs(at, seed, question.value("values", ""));
    for (size_t i = 0; i < at.inputs.size(); ++i) {
      const Json& literal = at.trace->inputs[i].literal;
      inputs.push_back(at.inputs[i].defined() ? add(at.inputs[i]) : Json{{"value", literal}});
    }
  }
  reply_payload_ = writer.take();
  if (reply_payload_.size() > kMostTensors) {
    reply_payload_.clear();
    throw JudgeFault{"its inputs and weights are too large for the interpreter", false, Outcome::kOutOfMemory};
  }
  spent_.mark("inputs");
  return passed({{"parameters", parameters}, {"matched", names}, {"inputs", inputs}});
}

Json Judge::compare(const Json& question, std::string_view tensors) {
  ReferenceCase& at = reference(question);
  const Oracle& expected = oracle(question, at);
  spent_.mark("oracle");
  std::vector<Output> outputs;
  std::vector<at::Tensor> values;
  Nest<BlobView> got;
  try {
    got = tensors_from(question.at("outputs"), tensors);
  } catch (const Tainted& tainted) {
    forged(tainted.why);
  }
  Finding difference = structure_difference(got, at.trace->outputs);
  if (!difference.passed()) return reply_to({difference, INFINITY}, {}, 0);
  for_each_leaf(got, [&](const BlobView& view, const std::string& path) {
    bool truth = view.dtype != Dtype::kBool ||
                 std::all_of(view.bytes.begin(), view.bytes.end(), [](char byte) { return byte == 0 || byte == 1; });
    if (!truth) forged("a boolean that is neither true nor false");
    outputs.push_back({view.shape, view.dtype, "output" + path});
    values.push_back(from_bytes(view.bytes, view.shape, view.dtype, options_.device));
  });
  const bool launches = question.value("launches", true);
  auto written = count_written(*at.trace, launches);
  const bool whole = launches || written;
  auto feed = [&](size_t index, Judgement& judgement) {
    at::Tensor flat = values[index].reshape({-1});
    for (int64_t at = 0; at < flat.numel() && (whole || !judgement.failed()); at += kPiece) {
      judgement.add(at, flat.narrow(0, at, std::min(kPiece, flat.numel() - at)));
    }
  };
  Comparison comparison = judge_outputs(outputs, expected.outputs, feed, written.get());
  spent_.mark("compare");
  Finding changed;
  for (const Json& index : question.at("changed")) {
    auto i = index.get<size_t>();
    if (std::count(at.mutated.begin(), at.mutated.end(), i) > 0) continue;
    changed = input_changed(static_cast<int64_t>(i));
    break;
  }
  const Json kept = question.value("changed_parameters", Json::array());
  for (const Json& name : kept) {
    for (const Parameter& theirs : at.parameters) {
      bool wrong =
          name.is_string() && theirs.name == name.get<std::string>() && !(at.changed && at.changed->count(theirs.id));
      if (wrong && changed.passed()) changed = parameter_changed(theirs.name);
    }
  }
  Json reply = reply_to(comparison, changed, question.at("damage").get<int64_t>());
  reply["kept"] = !kept.empty() || keeps_state(at);
  if (written && written->all > 0) reply["written"] = written->share();
  return reply;
}

// --- Time.

Json Judge::time(const Json& question) {
  ReferenceCase& at = reference(question);
  const CaseTrace& trace = candidate_trace(question);
  std::string key = question.at("task").get<std::string>();
  auto weight_seed = question.at("weight_seed").get<int64_t>();
  auto seeds = question.at("input_seeds").get<std::vector<int64_t>>();
  CHECK(seeds.size() == 2);
  bool has_candidate = at_work_->has_candidate;
  greet();
  give_candidate();
  if (at_work_->reference != key) {
    ask({{"do", "load"}, {"slot", "reference"}}, tasks_.at(key).bytes);
    at_work_->reference = key;
    give_weights("reference", *at.trace, at, weight_seed);
  }
  spent_.mark("load");
  Json second = question;
  second["input_seed"] = seeds[1];
  const Oracle& expected = oracle(second, at);
  spent_.mark("oracle");
  until_ = now_s() + question.value("deadline_s", kPatience);
  std::set<int64_t> restored = state_[trace.name];
  for (size_t i : at.mutated) restored.insert(trace.inputs[i].value);
  // More readings of what was just timed: all is in place, unless forward changes what it is given or keeps.
  bool again = question.value("again", false) && has_candidate && restored.empty();
  if (!again) {
    give_weights("candidate", trace, at, weight_seed);
    give_inputs_once(trace, at, seeds[1]);
    draw_inputs(at, seeds[0]);
    give_inputs("reference", *at.trace, at);
    spent_.mark("inputs");
  }
  at_work_->inputs.clear();
  forget_inputs(at);
  return_memory();
  Json timed = ask({{"do", "time"},
                    {"case", trace.name},
                    {"reference_case", at.trace->name},
                    {"spec", question.at("spec")},
                    {"first_place", question.value("first_place", 0)},
                    {"again", again},
                    {"restore", restored}});
  spent_.mark("timing");
  Comparison comparison = collect(trace, at, expected);
  spent_.mark("compare");
  Finding found = comparison.finding;
  if (found.passed() && !timed.at("changed").empty()) found = Rule::kKeptState;
  if (found.passed() && timed.at("unlike").get<int64_t>() > 0) found = Rule::kOtherWhenTimed;
  Json reply = {{"finding", to_json(found)}, {"readings", timed.at("readings")}};
  for (const char* key : {"triton_share", "chosen", "reference_bytes", "candidate_bytes"}) {
    if (timed.contains(key)) reply[key] = timed[key];
  }
  // Nothing that has to be read and written from memory can be done faster than the memory is. The cache may hold what
  // is read before a run begins, and what is written after it ends.
  int64_t written = 0;
  for (const Expectation& one : expected.outputs) {
    written += one.numel() * static_cast<int64_t>(c10::elementSize(one.dtype()));
  }
  int64_t bytes = least_traffic(bytes_to_read(*at.trace), written, cache_bytes_);
  double floor = bandwidth_ > 0 ? static_cast<double>(bytes) / bandwidth_ : 0;
  reply["floor_s"] = floor;
  ask({{"do", "forget"}, {"slot", "candidate"}, {"case", trace.name}});
  return reply;
}

}  // namespace tritonrl
