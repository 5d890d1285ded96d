// SPDX-License-Identifier: Apache-2.0
#include "verify/execute/interpret_executor.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"
#include "verify/sandbox/job_run.h"
#include "verify/trace/init_values.h"

namespace tritonrl {
namespace {

// The constant that a value is; null = it is none.
const TraceParameter* with_bytes(const CaseTrace& trace, int64_t value) {
  auto found = std::ranges::find_if(trace.parameters,
                                    [&](const TraceParameter& one) { return one.value == value && one.has_bytes; });
  return found == trace.parameters.end() ? nullptr : &*found;
}

// How many bytes runs that share a child may be given together, and for how many seconds they may compute.
constexpr size_t kMostTogether = size_t{32} << 20;
constexpr double kTogetherS = 5;

// The answer to an `interpret` job, in the form of the judge's question. Throws Tainted.
Json findings_of(const Json& header, std::string_view tensors, const CaseTrace& trace, const Json& given,
                 bool further) {
  strict::integer(header["programs"], "programs", 0, INT64_MAX);
  tensors_from(header["outputs"], tensors);
  Json changed = Json::array();
  const Json& matched = given.at("matched");
  const size_t inputs = given.at("inputs").size();
  const Json& after = strict::array(header["inputs_after"], "inputs_after", inputs);
  if (after.size() != inputs) throw Tainted{"an answer with other inputs"};
  for (size_t i = 0; i < after.size(); ++i) {
    if (after[i].is_null()) continue;
    if (trace.inputs[i % trace.inputs.size()].value < 0) throw Tainted{"an answer with other inputs"};
    tensor_from(after[i], tensors);
    if (!further) changed.push_back(i);  // Of a single call it is known.
  }
  Json parameters = Json::array();
  for (const Json& one : strict::array(header["kept"], "kept", matched.size())) {
    auto place = strict::integer(one, "kept", 0, static_cast<int64_t>(matched.size()) - 1);
    parameters.push_back(matched.at(static_cast<size_t>(place)));
  }
  return {{"outputs", header["outputs"]},
          {"changed", changed},
          {"changed_parameters", parameters},
          {"damage", strict::array(header["guards_broken"], "guards_broken", 1 << 20).size()}};
}

// Rather than of the child that did it.
bool tells_of_a_run(Rule rule) {
  return rule == Rule::kRace || rule == Rule::kMemoryFault || rule == Rule::kFalseHint || rule == Rule::kKernelFailed ||
         rule == Rule::kKernelName || rule == Rule::kKernelText || rule == Rule::kKernelPython ||
         rule == Rule::kNotInterpretable || rule == Rule::kOperatorFailed;
}

const CaseTrace& case_of(const TraceFile& file, const JudgeRun& run) {
  const CaseTrace* trace = file.find(run.calls.empty() ? run.name : run.calls);
  CHECK(trace) << "no case " << run.name;
  return *trace;
}

// References to the tensors that come with an answer of the judge's, where other tensors go before them.
void shift_references(Json* given, size_t bytes) {
  auto shift = [&](Json& reference) {
    if (reference.contains("offset")) reference["offset"] = reference["offset"].get<size_t>() + bytes;
  };
  for (Json& parameter : given->at("parameters")) shift(parameter.at(1));
  for (Json& input : given->at("inputs")) shift(input);
}

JudgeAnswer ended(const Finding& how) {
  JudgeAnswer answer;
  answer.finding = how;
  answer.lost = how.outcome() == Outcome::kHarnessFault;
  return answer;
}

}  // namespace

JudgeAnswer InterpretExecutor::begin(const Reference& reference, const TraceFile& trace, const KernelSet&) {
  reference_ = &reference;
  trace_ = &trace;
  weights_.clear();
  expected_.clear();
  ran_.clear();
  answered_.clear();
  return ended(Finding());
}

JudgeAnswer InterpretExecutor::ask(const char* what, const JudgeRun& run, const Json& question,
                                   const std::string& payload) {
  JudgeLease slot = judges_.acquire();
  JudgeAnswer answer = slot.give_task(reference_->key, *reference_->file.bytes);
  if (!answer.finding.passed()) return answer;
  return slot.ask_about(what, run, question, payload, limits_.reference_deadline_s);
}

JudgeAnswer InterpretExecutor::ask_for_inputs(const JudgeRun& run, OwnTime* own) {
  const CaseTrace& trace = case_of(*trace_, run);
  if (!weights_.count(trace.name)) {
    JudgeAnswer made = make_weights(run, own);
    if (!made.finding.passed() || made.body.contains("skipped")) return made;
  }
  Json list = Json::array();
  PayloadWriter initial;
  for (const Weight& one : weights_.at(trace.name).given) {
    const TraceValue& value = trace.values[static_cast<size_t>(one.value)];
    list.push_back({{"name", one.name}, {"shape", value.shape}, {"dtype", to_string(value.dtype)}});
    if (one.initial) list.back()["initial"] = initial.add({value.dtype, value.shape, *one.initial});
  }
  return ask("inputs", run, {{"parameters", list}}, initial.take());
}

Finding InterpretExecutor::run_init(const JudgeRun& run, const std::map<int64_t, size_t>& pins,
                                    const JudgeAnswer& given, const std::vector<int64_t>& want, OwnTime* own,
                                    std::map<int64_t, std::string>* made) {
  const CaseTrace& trace = case_of(*trace_, run);
  const InitValues init = init_values(trace);
  Json constants = Json::array(), pinned = Json::array();
  PayloadWriter bytes;
  for (const TraceParameter& parameter : trace.parameters) {
    if (!parameter.has_bytes) continue;
    const TraceValue& value = trace.values[static_cast<size_t>(parameter.value)];
    constants.push_back({parameter.value, bytes.add({value.dtype, value.shape, parameter.initial})});
  }
  for (const auto& [value, index] : pins) {
    BlobView tensor = tensor_from(given.body.at("parameters").at(index).at(1), given.payload);
    pinned.push_back({value, bytes.add(tensor), init.whole.at(value)});
  }
  std::string payload = *trace_->bytes;
  payload.resize((payload.size() + 15) / 16 * 16);
  Json args = {{"trace", trace_->bytes->size()},
               {"tensors", payload.size()},
               {"case", trace.name},
               {"parameters", constants},
               {"poison", run.poison >> 12 << 1},
               {"init", {{"seed", run.weight_seed}, {"pins", pinned}, {"want", want}}}};
  Job job{"interpret", std::move(args), payload + bytes.take()};
  job.deadline_s = run.deadline_s;
  job.memory_bytes = limits_.memory_bytes;
  Blob blob;
  Finding end = run_job(pool_, ForkServerKind::kInterpret, std::move(job), &blob, own);
  if (!end.passed()) return end;
  try {
    strict::object(blob.header, "weights", {"nonce", "ok", "values"});
    const Json& values = strict::array(blob.header["values"], "values", want.size());
    if (values.size() != want.size()) throw Tainted{"other weights than were asked for"};
    for (size_t i = 0; i < want.size(); ++i) {
      BlobView tensor = tensor_from(values[i], blob.tensors());
      const TraceValue& value = trace.values[static_cast<size_t>(want[i])];
      if (tensor.dtype != value.dtype || tensor.shape != value.shape) throw Tainted{"other weights than recorded"};
      (*made)[want[i]] = std::string(tensor.bytes);
    }
  } catch (const Tainted& tainted) {
    return {Rule::kForgedResult, tainted.why};
  }
  return {};
}

JudgeAnswer InterpretExecutor::make_weights(const JudgeRun& run, OwnTime* own) {
  const CaseTrace& trace = case_of(*trace_, run);
  const CaseTrace* reference = reference_->file.find(run.name);
  CHECK(reference) << "no reference of case " << run.name;
  const InitValues init = init_values(trace);
  auto value_of = [](const CaseTrace& of, int64_t id) -> const TraceValue& {
    return of.values[static_cast<size_t>(id)];
  };
  Weights weights;
  std::vector<int64_t> want;
  std::set<int64_t> storages;
  for (const TraceParameter& own_one : trace.parameters) {
    const TraceValue& value = value_of(trace, own_one.value);
    const bool known = is_the_tasks(trace, own_one, *reference);
    storages.insert(value.storage);
    weights.given.push_back({own_one.value, own_one.name, {}});
    if (own_one.has_bytes) {
      weights.given.back().initial = std::string(own_one.initial);
    } else if (!known && init.whole.count(own_one.value)) {
      want.push_back(own_one.value);
    } else if (!known) {
      const TraceParameter* constant = with_bytes(trace, own_one.value);
      if (!constant) return ended({Rule::kForgedResult, "a parameter without a value"});
      weights.given.back().initial = std::string(constant->initial);
    }
  }
  bool around = false;  // forward() finds more of a storage than the parameter in it.
  for (int64_t id : init.used) {
    const TraceValue& value = value_of(trace, id);
    bool within = std::ranges::any_of(trace.parameters, [&](const TraceParameter& one) {
      const TraceValue& weight = value_of(trace, one.value);
      return weight.storage == value.storage && weight.dtype == value.dtype && weight.offset <= value.offset &&
             weight.end_byte() >= value.end_byte();
    });
    around |= storages.count(value.storage) > 0 && !within;
    if (within) {
      weights.views.push_back(id);
      continue;
    }
    weights.given.push_back({id, "", {}});
    want.push_back(id);
  }
  const size_t finds = weights.given.size();
  if (!want.empty()) {
    for (int64_t id : like_parameters(trace, init, *reference)) {
      if (std::ranges::count(want, id) > 0) continue;
      weights.given.push_back({id, "", {}});
      want.push_back(id);
    }
    std::map<int64_t, std::string> made;
    auto take = [&](size_t until, const auto& wanted) {
      for (size_t i = 0; i < until; ++i) {
        auto bytes = made.find(weights.given[i].value);
        if (bytes != made.end() && wanted(i)) weights.given[i].initial = bytes->second;
      }
    };
    Finding end = run_init(run, {}, {}, want, own, &made);
    if (!end.passed()) return ended(end);
    take(weights.given.size(), [](size_t) { return true; });
    weights_[trace.name] = weights;
    JudgeAnswer given = ask_for_inputs(run, own);
    if (!given.finding.passed() || given.body.contains("skipped")) {
      weights_.erase(trace.name);
      return given;
    }
    std::map<int64_t, size_t> pins;
    std::vector<int64_t> pinned;
    for (size_t i = 0; i < weights.given.size(); ++i) {
      const Weight& one = weights.given[i];
      if (given.body.at("matched").at(i).is_null() || !init.whole.count(one.value)) continue;
      BlobView task = tensor_from(given.body.at("parameters").at(i).at(1), given.payload);
      if (one.initial && *one.initial == task.bytes) continue;
      for (int64_t id : {one.value, cast_from(trace, one.value)}) {
        if (!init.whole.count(id) || pins.count(id)) continue;
        pins[id] = i;
        pinned.push_back(id);
      }
    }
    if (around || makes_more_of(trace, init, pinned)) {
      end = run_init(run, pins, given, want, own, &made);
      if (!end.passed()) return ended(end);
      take(finds, [&](size_t i) { return given.body.at("matched").at(i).is_null(); });
    }
    weights.given.resize(finds);
  }
  weights_[trace.name] = std::move(weights);
  return ended({});
}

// Of an `interpret` job, for one run.
Json InterpretExecutor::arguments(const JudgeRun& run, const Json& given) const {
  // A product's work grows faster than its arrays do, at most with their square.
  auto programs = static_cast<int64_t>(static_cast<double>(limits_.max_programs) * run.growth * run.growth) *
                  static_cast<int64_t>(1 + run.earlier_seeds.size());
  const std::string& name = case_of(*trace_, run).name;
  const Weights& weights = weights_.at(name);
  Json parameters = Json::array();
  for (size_t i = 0; i < weights.given.size(); ++i) {
    parameters.push_back({weights.given[i].value, given.at("parameters").at(i).at(1)});
  }
  for (int64_t view : weights.views) parameters.push_back({view, nullptr});
  return {{"case", name},
          {"launches", run.launches},
          {"choices", run.choices},
          {"parameters", parameters},
          {"inputs", given.at("inputs")},
          {"poison", run.poison >> 12 << 2 | run.manner % 4},
          {"max_programs", programs}};
}

std::optional<JudgeAnswer> InterpretExecutor::run_together(OwnTime* own, double deadline_s) {
  std::vector<JudgeRun> runs = std::exchange(expected_, {});
  std::string payload = *trace_->bytes;
  payload.resize((payload.size() + 15) / 16 * 16);
  Json args = {{"trace", trace_->bytes->size()}, {"tensors", payload.size()}};
  std::vector<std::pair<const JudgeRun*, Json>> given;
  for (const JudgeRun& run : runs) {
    JudgeAnswer answer = ask_for_inputs(run, own);
    const bool usable = answer.finding.passed() && !answer.body.contains("skipped");
    if (!usable && &run == &runs[0]) return answer;
    if (!usable) {
      answered_[run.poison] = std::move(answer);
      continue;
    }
    const size_t before = payload.size() - args["tensors"].get<size_t>();
    if (before + answer.payload.size() > kMostTogether) break;
    shift_references(&answer.body, before);
    payload += answer.payload;
    payload.resize((payload.size() + 15) / 16 * 16);
    Json one = arguments(run, answer.body);
    given.empty() ? args.update(one) : args["others"].push_back(std::move(one));
    given.emplace_back(&run, std::move(answer.body));
  }
  if (given.size() < 2) return {};
  Job job{"interpret", std::move(args), std::move(payload)};
  job.deadline_s = std::min({deadline_s, kTogetherS, own ? own->left() : kTogetherS});
  job.memory_bytes = limits_.memory_bytes;
  Blob blob;
  OwnTime together;
  together.set_deadline(job.deadline_s);
  Finding end = run_job(pool_, ForkServerKind::kInterpret, std::move(job), &blob, &together);
  if (!end.passed()) {
    // What the child itself says of its first run would have been the same of that alone.
    if (!tells_of_a_run(end.rule())) return {};
    if (own) own->add(together.seconds());
    return ended(end);
  }
  try {
    Json header = blob.header;
    Json others = Json::array();
    if (header.is_object() && header.contains("others")) {
      others = strict::array(header["others"], "others", given.size() - 1);
      header.erase("others");
    }
    auto take = [&](size_t index, const Json& answer, std::string_view tensors) {
      const auto& [run, body] = given[index];
      strict::object(answer, "answer", {"outputs", "inputs_after", "kept", "programs", "guards_broken"});
      ran_[run->poison] = {findings_of(answer, tensors, case_of(*trace_, *run), body, !run->earlier_seeds.empty()),
                           std::string(tensors)};
    };
    header.erase("nonce");
    header.erase("ok");
    std::string_view all = blob.tensors();
    size_t first = all.size();
    for (size_t i = 0; i < others.size(); ++i) {
      strict::object(others[i], "another answer", {"answer", "tensors"});
      const Json& place = strict::object(others[i]["tensors"], "place", {"offset", "nbytes"});
      auto offset = strict::integer(place["offset"], "offset", 0, static_cast<int64_t>(all.size()));
      auto bytes = strict::integer(place["nbytes"], "nbytes", 0, static_cast<int64_t>(all.size()) - offset);
      take(i + 1, others[i]["answer"], all.substr(static_cast<size_t>(offset), static_cast<size_t>(bytes)));
      first = std::min(first, static_cast<size_t>(offset));
    }
    take(0, header, all.substr(0, first));
  } catch (const Tainted&) {
    ran_.clear();  // Who sends such things does so alone, too.
    return {};
  }
  if (own) own->add(together.seconds());
  return {};
}

JudgeAnswer InterpretExecutor::run(const JudgeRun& run, OwnTime* own) {
  if (!expected_.empty() && expected_.front().poison == run.poison) {
    if (auto answer = run_together(own, run.deadline_s)) return std::move(*answer);
  }
  if (auto known = answered_.extract(run.poison)) return std::move(known.mapped());
  if (auto ready = ran_.extract(run.poison)) {
    return ask("compare", run, ready.mapped().question, ready.mapped().tensors);
  }
  const CaseTrace& trace = case_of(*trace_, run);
  JudgeAnswer given = ask_for_inputs(run, own);
  if (!given.finding.passed() || given.body.contains("skipped")) return given;

  std::string payload = *trace_->bytes;
  payload.resize((payload.size() + 15) / 16 * 16);  // The child reads tensors in place.
  Json args = arguments(run, given.body);
  args.update({{"trace", trace_->bytes->size()}, {"tensors", payload.size()}});
  Job job{"interpret", std::move(args), payload + given.payload};
  given.payload = payload = "";
  job.deadline_s = run.deadline_s;
  job.memory_bytes = limits_.memory_bytes;
  Blob blob;
  Finding end = run_job(pool_, ForkServerKind::kInterpret, std::move(job), &blob, own);
  if (!end.passed()) return ended(end);
  try {
    strict::object(blob.header, "answer",
                   {"nonce", "ok", "outputs", "inputs_after", "kept", "programs", "guards_broken"});
    Json question = findings_of(blob.header, blob.tensors(), trace, given.body, !run.earlier_seeds.empty());
    return ask("compare", run, question, std::string(blob.tensors()));
  } catch (const Tainted& tainted) {
    return ended({Rule::kForgedResult, tainted.why});
  }
}

TimeAnswer InterpretExecutor::time(JudgeTiming, const TimingProtocol&) {
  CHECK(false) << "the interpreter measures no time";
  return {};
}

}  // namespace tritonrl
