// SPDX-License-Identifier: Apache-2.0
#include "verify/trace/reference.h"

#include <algorithm>

#include "base/text.h"
#include "verify/sandbox/blob.h"
#include "verify/trace/trace_graph.h"

namespace tritonrl {
namespace {

constexpr int kChances = 2;

Json recorded_cases(const std::vector<CaseSpec>& cases) {
  Json list = Json::array();
  for (const CaseSpec& spec : cases) {
    if (spec.trace.empty() && spec.not_possible.empty()) list.push_back(case_question(spec));
  }
  return list;
}

}  // namespace

Json case_question(const CaseSpec& spec) {
  Json question = {{"name", spec.name}, {"constants", spec.constants}};
  if (spec.other_precision) question["dtype"] = "other";
  if (spec.other_scalars) question["scalars"] = "other";
  if (spec.additional) question["additional"] = true;
  return question;
}

void ReferenceCache::blame(const std::string& key, const std::string& why) {
  std::lock_guard lock(mutex_);
  auto& [times, last] = blamed_[key];
  ++times;
  last = why;
}

std::string ReferenceCache::blamed(const std::string& key) const {
  std::lock_guard lock(mutex_);
  auto it = blamed_.find(key);
  return it == blamed_.end() || it->second.first < kChances ? "" : it->second.second;
}

std::shared_ptr<const Reference> ReferenceCache::ask(const Task& task, const std::vector<CaseSpec>& cases,
                                                     int64_t weight_seed, const TargetGpu& target) {
  std::string key = content_hash(
      cat(task.source, '\0', recorded_cases(cases).dump(), '\0', weight_seed, '\0', to_json(target).dump()));
  return answers_.get(key, [&] {
    auto reference = record(key, task, cases, weight_seed, target);
    return reference->passing ? record(key, task, cases, weight_seed, target) : reference;
  });
}

std::shared_ptr<const Reference> ReferenceCache::record(const std::string& key, const Task& task,
                                                        const std::vector<CaseSpec>& cases, int64_t weight_seed,
                                                        const TargetGpu& target) {
  auto reference = std::make_shared<Reference>();
  reference->key = key;
  reference->target = target;
  Job job{"record",
          {{"reference", true},
           {"task_source", task.source},
           {"weight_seed", weight_seed},
           {"cases", recorded_cases(cases)},
           {"gpu", to_json(target)}},
          ""};
  job.deadline_s = deadline_s_;
  job.memory_bytes = memory_bytes_;
  JobAnswer answer = pool_.run(ForkServerKind::kRecord, std::move(job));
  using Status = JobAnswer::Status;
  bool lost = answer.status == Status::kLost || answer.status == Status::kForkFailed ||
              answer.status == Status::kKilled || answer.status == Status::kStarved;
  if (lost) {
    reference->lost = true;
    reference->failure = answer.fault.empty() ? "the worker gave the job up" : answer.fault;
    return reference;
  }
  if (answer.status == Status::kMemory) {
    reference->passing = true;
    reference->failure = "it takes too much memory to record";
    return reference;
  }
  if (answer.status == Status::kDeadline) {
    reference->passing = true;
    reference->failure = "it takes too long to record";
    return reference;
  }
  if (answer.status != Status::kExited || answer.result.empty()) {
    reference->passing = true;
    reference->failure = cat("the recorder ended without a result; it said: ", trim(answer.stderr_tail));
    return reference;
  }
  auto blob = parse_blob(std::move(answer.result), answer.nonce);
  if (!blob) {
    reference->failure = blob.why;
    return reference;
  }
  if (blob.value->failure) {
    reference->failure = human_text(*blob.value->failure);
    return reference;
  }
  auto file = parse_trace_file(std::make_shared<const std::string>(blob.value->tensors()));
  if (!file) {
    reference->failure = file.why;
    return reference;
  }
  reference->file = std::move(*file.value);
  try {
    for (const auto& [name, failure] : case_failures(blob.value->header)) {
      reference->not_possible[name] = human_text(failure);
    }
  } catch (const Tainted& tainted) {
    reference->failure = tainted.why;
  }
  for (const CaseTrace& trace : reference->file.cases) {
    if (draws_random_numbers(trace)) {
      reference->failure = "forward() draws random numbers, so that no answer is the right one";
    }
  }
  for (const CaseSpec& spec : cases) {
    bool known = reference->file.find(spec.recorded_as()) || reference->not_possible.count(spec.recorded_as()) ||
                 !spec.not_possible.empty();
    if (!known) reference->failure = "its trace lacks a case";
  }
  return reference;
}

std::string floating_dtype(const Json& inputs) {
  for (const Json& input : inputs) {
    if (!input.contains("dtype")) continue;
    auto dtype = dtype_from_string(input["dtype"].get<std::string>());
    if (dtype && is_floating(*dtype)) return to_string(*dtype);
  }
  return "other";
}

Json record_case(const CaseTrace& reference, const CaseSpec& spec) {
  Json inputs = Json::array();
  for (const TraceInput& input : reference.inputs) {
    if (input.value < 0) {
      inputs.push_back({{"value", input.literal}});
      continue;
    }
    const TraceValue& value = reference.values[static_cast<size_t>(input.value)];
    inputs.push_back({{"shape", value.shape}, {"dtype", to_string(value.dtype)}});
    // An expanded input is given whole: no two elements of what is copied to a candidate share a place.
    if (std::count(value.stride.begin(), value.stride.end(), 0) == 0) inputs.back()["stride"] = value.stride;
  }
  Json record = case_question(spec);
  record.update(
      {{"init_inputs", reference.notes.value("init_inputs", Json::array())}, {"inputs", inputs}, {"compile", false}});
  if (spec.other_precision) record["dtype"] = floating_dtype(inputs);
  return record;
}

}  // namespace tritonrl
