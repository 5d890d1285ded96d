// SPDX-License-Identifier: Apache-2.0
#include "verify/reference.h"

#include "base/text.h"
#include "verify/blob.h"

namespace tritonrl {
namespace {

constexpr size_t kMaxAnswers = 4096;  // A recording of a reference is a few kilobytes.

}  // namespace

std::shared_ptr<const Reference> ReferenceCache::ask(const Task& task, const std::vector<CaseSpec>& cases,
                                                     int64_t weight_seed) {
  Json sizes = Json::array();
  for (const CaseSpec& spec : cases) sizes.push_back({spec.name, spec.constants});
  std::string key = content_hash(cat(task.source, '\0', sizes.dump(), '\0', weight_seed));
  std::promise<std::shared_ptr<const Reference>> promise;
  Future future;
  bool ours = false;
  {
    std::lock_guard lock(mutex_);
    auto it = answers_.find(key);
    if (it != answers_.end()) {
      future = it->second;
    } else {
      if (answers_.size() >= kMaxAnswers) answers_.clear();
      future = answers_[key] = promise.get_future().share();
      ours = true;
    }
  }
  if (ours) {
    auto reference = record(key, task, cases, weight_seed);
    if (reference->lost) {
      std::lock_guard lock(mutex_);
      answers_.erase(key);
    }
    promise.set_value(reference);
  }
  return future.get();
}

std::shared_ptr<const Reference> ReferenceCache::record(const std::string& key, const Task& task,
                                                        const std::vector<CaseSpec>& cases, int64_t weight_seed) {
  auto reference = std::make_shared<Reference>();
  reference->key = key;
  Json list = Json::array();
  for (const CaseSpec& spec : cases) list.push_back({{"name", spec.name}, {"constants", spec.constants}});
  Job job{
      "record",
      {{"reference", true}, {"task_source", task.source}, {"weight_seed", weight_seed}, {"cases", list}, {"arch", 90}},
      ""};
  job.deadline_s = deadline_s_;
  job.memory_bytes = memory_bytes_;
  JobAnswer answer = pool_.run(ZygoteKind::kRecord, std::move(job));
  using Status = JobAnswer::Status;
  if (answer.status == Status::kLost || answer.status == Status::kForkFailed || answer.status == Status::kKilled) {
    reference->lost = true;
    reference->failure = answer.fault.empty() ? "the worker gave the job up" : answer.fault;
    return reference;
  }
  if (answer.status == Status::kDeadline) {
    reference->failure = "it takes too long to record";
    return reference;
  }
  if (answer.status != Status::kExited || answer.result.empty()) {
    reference->failure = cat("the recorder ended without a result; it said: ", trim(answer.stderr_tail));
    return reference;
  }
  auto blob = parse_blob(std::move(answer.result), answer.nonce);
  if (!blob) {
    reference->failure = blob.why;
    return reference;
  }
  if (blob.value->failure) {
    reference->failure = blob.value->failure->message;
    return reference;
  }
  auto file = parse_plan_file(std::make_shared<const std::string>(blob.value->tensors()));
  if (!file) {
    reference->failure = file.why;
    return reference;
  }
  reference->file = std::move(*file.value);
  for (const CaseSpec& spec : cases) {
    if (!reference->file.find(spec.name)) reference->failure = "its recording lacks a case";
  }
  return reference;
}

Json record_case(const Plan& reference, const CaseSpec& spec) {
  Json inputs = Json::array(), parameters = Json::array();
  for (const PlanInput& input : reference.inputs) {
    if (input.value < 0) {
      inputs.push_back({{"value", input.literal}});
      continue;
    }
    const PlanValue& value = reference.values[static_cast<size_t>(input.value)];
    inputs.push_back({{"shape", value.shape}, {"dtype", to_string(value.dtype)}, {"stride", value.stride}});
  }
  for (const PlanParameter& parameter : reference.parameters) {
    const PlanValue& value = reference.values[static_cast<size_t>(parameter.value)];
    parameters.push_back({{"name", parameter.name}, {"shape", value.shape}, {"dtype", to_string(value.dtype)}});
  }
  return {{"name", spec.name},
          {"constants", spec.constants},
          {"init_inputs", reference.notes.value("init_inputs", Json::array())},
          {"reference_parameters", parameters},
          {"inputs", inputs},
          {"compile", false}};
}

}  // namespace tritonrl
