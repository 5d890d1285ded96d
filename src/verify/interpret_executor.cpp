// SPDX-License-Identifier: Apache-2.0
#include "verify/interpret_executor.h"

#include "base/check.h"
#include "verify/job_run.h"

namespace tritonrl {
namespace {

// What the judge needs to know of a candidate's parameters; `initial` gets the bytes that __init__ left.
Json parameters_of(const Plan& plan, PayloadWriter* initial) {
  Json list = Json::array();
  for (const PlanParameter& parameter : plan.parameters) {
    const PlanValue& value = plan.values[static_cast<size_t>(parameter.value)];
    Json entry = {{"name", parameter.name}, {"shape", value.shape}, {"dtype", to_string(value.dtype)}};
    if (parameter.has_bytes) entry["initial"] = initial->add({value.dtype, value.shape, parameter.initial});
    list.push_back(std::move(entry));
  }
  return list;
}

// The answer to an `interpret` job, in the form of the judge's question. Throws Tainted.
Json findings_of(const Blob& blob, const Plan& plan) {
  const Json& header = blob.header;
  strict::object(header, "answer", {"nonce", "ok", "outputs", "inputs_after", "programs", "guards_broken"});
  strict::integer(header["programs"], "programs", 0, INT64_MAX);
  tensors_from(header["outputs"], blob.tensors());
  Json changed = Json::array();
  const Json& after = strict::array(header["inputs_after"], "inputs_after", plan.inputs.size());
  if (after.size() != plan.inputs.size()) throw Tainted{"an answer with other inputs"};
  for (size_t i = 0; i < after.size(); ++i) {
    if (after[i].is_null()) continue;
    if (plan.inputs[i].value < 0) throw Tainted{"an answer with other inputs"};
    tensor_from(after[i], blob.tensors());
    changed.push_back(i);
  }
  return {{"outputs", header["outputs"]},
          {"changed", changed},
          {"damage", strict::array(header["guards_broken"], "guards_broken", 1 << 20).size()}};
}

GpuAnswer ended(const Finding& how) {
  GpuAnswer answer;
  answer.finding = how;
  answer.lost = how.outcome() == Outcome::kHarnessFault;
  return answer;
}

}  // namespace

GpuAnswer InterpretExecutor::begin(const Reference& reference, const PlanFile& recording, const KernelSet&) {
  reference_ = &reference;
  recording_ = &recording;
  return ended(Finding());
}

GpuAnswer InterpretExecutor::run(const GpuRun& run) {
  const Plan* plan = recording_->find(run.name);
  CHECK(plan) << "no case " << run.name;
  PayloadWriter initial;
  Json question = {{"parameters", parameters_of(*plan, &initial)}};
  auto judge = [&](const char* what, const std::string& payload) {
    GpuLease lane = judges_.acquire();
    GpuAnswer answer = lane.give_task(reference_->key, *reference_->file.bytes);
    if (!answer.finding.passed()) return answer;
    return lane.ask_about(what, run, question, payload, limits_.reference_deadline_s);
  };
  GpuAnswer given = judge("inputs", initial.take());
  if (!given.finding.passed() || given.body.contains("skipped")) return given;

  std::string payload = *recording_->bytes;
  payload.resize((payload.size() + 15) / 16 * 16);  // The child reads tensors in place.
  // A product's work grows faster than its arrays do, at most with their square.
  auto programs = static_cast<int64_t>(static_cast<double>(limits_.max_programs) * run.growth * run.growth);
  Job job{"interpret",
          {{"recording", recording_->bytes->size()},
           {"tensors", payload.size()},
           {"case", plan->name},
           {"launches", run.launches},
           {"parameters", given.body.at("parameters")},
           {"inputs", given.body.at("inputs")},
           {"poison", run.poison >> 12 << 1 | (run.backwards ? 1 : 0)},
           {"max_programs", programs}},
          payload + given.payload};
  given.payload = payload = "";
  job.deadline_s = run.deadline_s;
  job.memory_bytes = limits_.memory_bytes;
  Blob blob;
  Finding end = run_job(pool_, ZygoteKind::kInterpret, std::move(job), &blob);
  if (!end.passed()) return ended(end);
  try {
    question = findings_of(blob, *plan);
  } catch (const Tainted& tainted) {
    return ended({Rule::kForgedResult, tainted.why});
  }
  return judge("compare", std::string(blob.tensors()));
}

TimeAnswer InterpretExecutor::time(GpuTiming, const TimingProtocol&) {
  CHECK(false) << "the interpreter measures no time";
  return {};
}

}  // namespace tritonrl
