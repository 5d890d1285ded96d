// SPDX-License-Identifier: Apache-2.0
#include "verify/execute/interpret_executor.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "verify/sandbox/job_run.h"

namespace tritonrl {
namespace {

// What the judge needs to know of a candidate's parameters; `initial` gets the bytes that __init__ left.
Json parameters_of(const CaseTrace& trace, PayloadWriter* initial) {
  Json list = Json::array();
  for (const TraceParameter& parameter : trace.parameters) {
    const TraceValue& value = trace.values[static_cast<size_t>(parameter.value)];
    Json entry = {{"name", parameter.name}, {"shape", value.shape}, {"dtype", to_string(value.dtype)}};
    if (parameter.has_bytes) entry["initial"] = initial->add({value.dtype, value.shape, parameter.initial});
    list.push_back(std::move(entry));
  }
  return list;
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
  for (const Json& one : strict::array(header["kept"], "kept", trace.parameters.size())) {
    auto place = strict::integer(one, "kept", 0, static_cast<int64_t>(trace.parameters.size()) - 1);
    parameters.push_back(matched.at(static_cast<size_t>(place)));
  }
  return {{"outputs", header["outputs"]},
          {"changed", changed},
          {"changed_parameters", parameters},
          {"damage", strict::array(header["guards_broken"], "guards_broken", 1 << 20).size()}};
}

// Rather than of the child that did it.
bool tells_of_a_run(Rule rule) {
  return rule == Rule::kRace || rule == Rule::kMemoryFault || rule == Rule::kKernelFailed ||
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

// Of an `interpret` job, for one run.
Json InterpretExecutor::arguments(const JudgeRun& run, const Json& given) const {
  // A product's work grows faster than its arrays do, at most with their square.
  auto programs = static_cast<int64_t>(static_cast<double>(limits_.max_programs) * run.growth * run.growth) *
                  static_cast<int64_t>(1 + run.earlier_seeds.size());
  return {{"case", case_of(*trace_, run).name},
          {"launches", run.launches},
          {"choices", run.choices},
          {"parameters", given.at("parameters")},
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
    PayloadWriter initial;
    Json question = {{"parameters", parameters_of(case_of(*trace_, run), &initial)}};
    JudgeAnswer answer = ask("inputs", run, question, initial.take());
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
  PayloadWriter initial;
  Json question = {{"parameters", parameters_of(trace, &initial)}};
  JudgeAnswer given = ask("inputs", run, question, initial.take());
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
    question = findings_of(blob.header, blob.tensors(), trace, given.body, !run.earlier_seeds.empty());
  } catch (const Tainted& tainted) {
    return ended({Rule::kForgedResult, tainted.why});
  }
  return ask("compare", run, question, std::string(blob.tensors()));
}

TimeAnswer InterpretExecutor::time(JudgeTiming, const TimingProtocol&) {
  CHECK(false) << "the interpreter measures no time";
  return {};
}

}  // namespace tritonrl
