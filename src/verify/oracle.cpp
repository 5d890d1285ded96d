// SPDX-License-Identifier: Apache-2.0
#include "verify/oracle.h"

#include <signal.h>

#include <algorithm>

#include "base/text.h"
#include "verify/verdict.h"

namespace tritonrl {
namespace {

bool same_structure(const Nest<BlobView>& a, const Nest<BlobView>& b) {
  if (a.kind != b.kind || a.children.size() != b.children.size() || a.keys != b.keys) return false;
  if (a.kind == Nest<BlobView>::Kind::kLeaf) {
    return a.leaf.shape == b.leaf.shape && b.leaf.dtype == (is_floating(a.leaf.dtype) ? Dtype::kFloat64 : a.leaf.dtype);
  }
  for (size_t i = 0; i < a.children.size(); ++i) {
    if (!same_structure(a.children[i], b.children[i])) return false;
  }
  return true;
}

void read_header(OracleAnswer* out) {
  const Json& header = out->blob.header;
  std::string_view area = out->blob.tensors();
  strict::object(
      header, "answer",
      {"nonce", "ok", "parameters", "inputs", "outputs", "outputs64", "init_inputs", "constants", "inputs_mutated"},
      {"seconds", "again", "controls"});
  for (const Json& item : strict::array(header["parameters"], "parameters", 10000)) {
    strict::object(item, "parameter", {"name", "init_hash", "tensor"});
    out->parameters.push_back({strict::text(item["name"], "name", 1024), strict::text(item["init_hash"], "hash", 128),
                               tensor_from(item["tensor"], area)});
  }
  for (const Json& item : strict::array(header["inputs"], "inputs", 1024)) {
    OracleInput input;
    input.is_tensor = strict::object(item, "input", {"kind"}, {"tensor", "value"})["kind"] == "tensor";
    if (!item.contains(input.is_tensor ? "tensor" : "value")) throw Tainted{"a malformed input"};
    if (input.is_tensor) {
      input.tensor = tensor_from(item["tensor"], area);
    } else {
      input.value = item["value"];
    }
    out->inputs.push_back(std::move(input));
  }
  for (const Json& item : strict::array(header["inputs_mutated"], "inputs_mutated", 1024)) {
    out->mutated.insert(static_cast<size_t>(strict::integer(item, "index", 0, 1024)));
  }
  out->outputs = tensors_from(header["outputs"], area);
  out->truth = tensors_from(header["outputs64"], area);
  out->init_inputs = header["init_inputs"];
  if (header.contains("again")) out->again = tensors_from(header["again"], area);
  if (header.contains("controls")) {
    for (const Json& item : strict::array(header["controls"], "controls", 64)) {
      strict::object(item, "control", {"op", "outputs"});
      out->controls.emplace_back(strict::text(item["op"], "op", 256), tensors_from(item["outputs"], area));
    }
  }
  if (!same_structure(out->outputs, out->truth)) throw Tainted{"its answers in two precisions differ in structure"};
}

}  // namespace

OracleAnswer parse_oracle(JobAnswer answer) {
  using Status = JobAnswer::Status;
  OracleAnswer out;
  if (answer.status == Status::kLost || answer.status == Status::kForkFailed || answer.status == Status::kKilled) {
    out.lost = true;
    out.failure = answer.fault;
    return out;
  }
  if (answer.status != Status::kExited || answer.code != 0 || answer.result.empty()) {
    out.passing = answer.status != Status::kOverflow;
    out.out_of_memory = !out.passing || (answer.status == Status::kSignaled && answer.code == SIGKILL);
    out.failure = answer.status == Status::kDeadline   ? "it takes too long"
                  : answer.status == Status::kOverflow ? "its inputs and outputs are too large"
                                                       : cat("it died: ", trim(valid_utf8(answer.stderr_tail)));
    return out;
  }
  auto blob = parse_blob(std::move(answer.result), answer.nonce);
  if (!blob) {
    out.failure = blob.why;
    return out;
  }
  out.blob = std::move(*blob.value);
  if (out.blob.failure) {
    out.failure = human_text(*out.blob.failure);
    out.passing = out.out_of_memory = out.blob.failure->outcome() == Outcome::kOutOfMemory;
    return out;
  }
  try {
    read_header(&out);
  } catch (const Tainted& tainted) {
    out.failure = tainted.why;
  }
  return out;
}

std::shared_ptr<const OracleAnswer> OracleCache::ask(const Task& task, const CaseSpec& spec, int64_t weight_seed,
                                                     int64_t input_seed) {
  Json args = {
      {"source", task.source}, {"constants", spec.constants}, {"weight_seed", weight_seed}, {"input_seed", input_seed}};
  if (!spec.values.empty()) args["values"] = spec.values;
  if (spec.other_precision) args["dtype"] = "other";
  std::string key = content_hash(json_line(args));
  std::promise<std::shared_ptr<const OracleAnswer>> promise;
  Future known;
  {
    std::lock_guard lock(mutex_);
    auto [it, fresh] = answers_.try_emplace(key);
    if (fresh) {
      it->second = promise.get_future().share();
    } else {
      known = it->second;
    }
  }
  if (known.valid()) return known.get();

  Job job{"oracle", std::move(args), "", deadline_s_, memory_bytes_};
  job.max_result_bytes = int64_t{1} << 30;
  // The views point into the blob's heap buffer, which moves of the answer leave where it is.
  std::shared_ptr<OracleAnswer> answer;
  try {
    for (int tries = 0; tries < 2 && (!answer || answer->passing); ++tries) {
      answer = std::make_shared<OracleAnswer>(parse_oracle(pool_.run(ZygoteKind::kInterpret, job)));
    }
  } catch (...) {  // Whoever else waits for it has to know.
    promise.set_exception(std::current_exception());
    std::lock_guard lock(mutex_);
    answers_.erase(key);
    throw;
  }
  promise.set_value(answer);
  std::lock_guard lock(mutex_);
  if (answer->lost || answer->passing) {
    answers_.erase(key);
    return answer;
  }
  auto size = static_cast<int64_t>(answer->blob.bytes.size());
  order_.emplace_back(key, size);
  bytes_ += size;
  while (bytes_ > max_bytes_ && order_.size() > 1) {
    bytes_ -= order_.front().second;
    answers_.erase(order_.front().first);
    order_.pop_front();
  }
  return answer;
}

}  // namespace tritonrl
