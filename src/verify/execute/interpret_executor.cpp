// SPDX-License-Identifier: Apache-2.0
#include "verify/execute/interpret_executor.h"

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

// The answer to an `interpret` job, in the form of the judge's question. Throws Tainted.
Json findings_of(const Blob& blob, const CaseTrace& trace, const Json& given, bool further) {
  const Json& header = blob.header;
  strict::object(header, "answer", {"nonce", "ok", "outputs", "inputs_after", "kept", "programs", "guards_broken"});
  strict::integer(header["programs"], "programs", 0, INT64_MAX);
  tensors_from(header["outputs"], blob.tensors());
  Json changed = Json::array();
  const Json& matched = given.at("matched");
  const size_t inputs = given.at("inputs").size();
  const Json& after = strict::array(header["inputs_after"], "inputs_after", inputs);
  if (after.size() != inputs) throw Tainted{"an answer with other inputs"};
  for (size_t i = 0; i < after.size(); ++i) {
    if (after[i].is_null()) continue;
    if (trace.inputs[i % trace.inputs.size()].value < 0) throw Tainted{"an answer with other inputs"};
    tensor_from(after[i], blob.tensors());
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
  return ended(Finding());
}

JudgeAnswer InterpretExecutor::run(const JudgeRun& run, OwnTime* own) {
  const CaseTrace* trace = trace_->find(run.calls.empty() ? run.name : run.calls);
  CHECK(trace) << "no case " << run.name;
  PayloadWriter initial;
  Json question = {{"parameters", parameters_of(*trace, &initial)}};
  auto judge = [&](const char* what, const std::string& payload) {
    JudgeLease slot = judges_.acquire();
    JudgeAnswer answer = slot.give_task(reference_->key, *reference_->file.bytes);
    if (!answer.finding.passed()) return answer;
    return slot.ask_about(what, run, question, payload, limits_.reference_deadline_s);
  };
  JudgeAnswer given = judge("inputs", initial.take());
  if (!given.finding.passed() || given.body.contains("skipped")) return given;

  std::string payload = *trace_->bytes;
  payload.resize((payload.size() + 15) / 16 * 16);  // The child reads tensors in place.
  // A product's work grows faster than its arrays do, at most with their square.
  auto programs = static_cast<int64_t>(static_cast<double>(limits_.max_programs) * run.growth * run.growth) *
                  static_cast<int64_t>(1 + run.earlier_seeds.size());
  Job job{"interpret",
          {{"trace", trace_->bytes->size()},
           {"tensors", payload.size()},
           {"case", trace->name},
           {"launches", run.launches},
           {"choices", run.choices},
           {"parameters", given.body.at("parameters")},
           {"inputs", given.body.at("inputs")},
           {"poison", run.poison >> 12 << 1 | (run.backwards ? 1 : 0)},
           {"max_programs", programs}},
          payload + given.payload};
  given.payload = payload = "";
  job.deadline_s = run.deadline_s;
  job.memory_bytes = limits_.memory_bytes;
  Blob blob;
  Finding end = run_job(pool_, ForkServerKind::kInterpret, std::move(job), &blob, own);
  if (!end.passed()) return ended(end);
  try {
    question = findings_of(blob, *trace, given.body, !run.earlier_seeds.empty());
  } catch (const Tainted& tainted) {
    return ended({Rule::kForgedResult, tainted.why});
  }
  return judge("compare", std::string(blob.tensors()));
}

TimeAnswer InterpretExecutor::time(JudgeTiming, const TimingProtocol&) {
  CHECK(false) << "the interpreter measures no time";
  return {};
}

}  // namespace tritonrl
