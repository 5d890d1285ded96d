// SPDX-License-Identifier: Apache-2.0
#include "verify/recording.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/text.h"
#include "verify/reference.h"

namespace tritonrl {
namespace {

bool alike(const BlobView& a, const BlobView& b) { return a.shape == b.shape && a.dtype == b.dtype; }

std::vector<int64_t> contiguous(const std::vector<int64_t>& shape) {
  std::vector<int64_t> stride(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) stride[i - 1] = stride[i] * std::max<int64_t>(shape[i], 1);
  return stride;
}

const PlanValue& value_of(const Plan& plan, int64_t id) { return plan.values[static_cast<size_t>(id)]; }

// A parameter as __init__ left it; without bytes when it did not really run.
BlobView initial(const Plan& plan, const PlanParameter& parameter) {
  const PlanValue& value = value_of(plan, parameter.value);
  return {value.dtype, value.shape, parameter.initial};
}

void check_case(const Plan& plan, const CaseRequest& request) {
  const OracleAnswer& oracle = *request.oracle;
  if (plan.name != request.spec.name) throw Tainted{"the recording has another case"};
  if (plan.init_steps + plan.input_steps > 0) throw Tainted{"the recording has sections that were not asked for"};
  if (plan.inputs.size() != oracle.inputs.size()) throw Tainted{"the recording has another number of inputs"};
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    if ((plan.inputs[i].value >= 0) != oracle.inputs[i].is_tensor) throw Tainted{"the recording has other inputs"};
    if (plan.inputs[i].value < 0) continue;
    const PlanValue& value = value_of(plan, plan.inputs[i].value);
    const BlobView& tensor = oracle.inputs[i].tensor;
    if (value.shape != tensor.shape || value.dtype != tensor.dtype) throw Tainted{"the recording has other inputs"};
  }
  for (const PlanParameter& parameter : plan.parameters) {
    bool known = parameter.has_bytes;
    for (const OracleParameter& reference : oracle.parameters) {
      known |= reference.name == parameter.name && alike(reference.tensor, initial(plan, parameter));
    }
    if (!known) throw Tainted{"a parameter without a value"};
  }
}

}  // namespace

Json record_arguments(const Task& task, const std::string& code, int64_t weight_seed,
                      const std::vector<CaseRequest>& requests) {
  Json cases = Json::array();
  for (const CaseRequest& request : requests) {
    Json parameters = Json::array(), inputs = Json::array();
    for (const OracleParameter& parameter : request.oracle->parameters) {
      parameters.push_back(
          {{"name", parameter.name}, {"shape", parameter.tensor.shape}, {"dtype", to_string(parameter.tensor.dtype)}});
    }
    for (const OracleInput& input : request.oracle->inputs) {
      inputs.push_back(input.is_tensor ? Json{{"shape", input.tensor.shape},
                                              {"dtype", to_string(input.tensor.dtype)},
                                              {"stride", contiguous(input.tensor.shape)}}
                                       : Json{{"value", input.value}});
    }
    cases.push_back(case_question(request.spec));
    cases.back().update({{"init_inputs", request.oracle->init_inputs},
                         {"reference_parameters", parameters},
                         {"inputs", inputs},
                         {"compile", false}});
    if (request.spec.other_precision) cases.back()["dtype"] = floating_dtype(inputs);
  }
  return {{"task_source", task.source},
          {"candidate_source", code},
          {"weight_seed", weight_seed},
          {"init_inputs", cases[0]["init_inputs"]},
          {"reference_parameters", cases[0]["reference_parameters"]},
          {"cases", cases},
          {"arch", 90}};
}

const Plan& Recording::plan(const CaseSpec& spec) const {
  const Plan* plan = file.find(spec.recorded_as());
  CHECK(plan) << "no case " << spec.name;
  return *plan;
}

Parsed<Recording> parse_recording(const Blob& blob, const std::vector<CaseRequest>& requests) {
  try {
    strict::object(blob.header, "recording", {"nonce", "ok"}, {"seconds", "failures"});
    Recording out;
    out.failed = case_failures(blob.header);
    auto file = parse_plan_file(std::make_shared<const std::string>(blob.tensors()));
    if (!file) throw Tainted{file.why};
    out.file = std::move(*file.value);
    if (out.file.cases.size() + out.failed.size() != requests.size()) {
      throw Tainted{"the recording has another number of cases"};
    }
    size_t next = 0;
    for (const CaseRequest& request : requests) {
      if (out.failed.count(request.spec.name) && request.spec.additional) continue;
      if (next == out.file.cases.size()) throw Tainted{"the recording lacks a case"};
      check_case(out.file.cases[next++], request);
    }
    return {std::move(out), ""};
  } catch (const Tainted& tainted) {
    return {std::nullopt, tainted.why};
  }
}

std::vector<BlobView> match_parameters(const Plan& plan, const OracleAnswer& oracle) {
  std::vector<BlobView> values;
  std::vector<bool> matched(plan.parameters.size(), false);
  std::set<const OracleParameter*> taken;
  for (size_t i = 0; i < plan.parameters.size(); ++i) {
    values.push_back(initial(plan, plan.parameters[i]));
    for (const OracleParameter& reference : oracle.parameters) {
      if (matched[i] || reference.name != plan.parameters[i].name || !alike(reference.tensor, values[i])) continue;
      values[i] = reference.tensor;
      matched[i] = true;
      taken.insert(&reference);
    }
  }
  for (size_t i = 0; i < plan.parameters.size(); ++i) {
    const std::string& hash = plan.parameters[i].init_hash;
    for (const OracleParameter& reference : oracle.parameters) {
      if (matched[i] || hash.empty() || taken.count(&reference)) continue;
      if (reference.init_hash != hash || !alike(reference.tensor, values[i])) continue;
      values[i] = reference.tensor;
      matched[i] = true;
      taken.insert(&reference);
    }
  }
  return values;
}

InterpretRequest interpret_arguments(const Recording& recording, const Plan& plan, const OracleAnswer& oracle,
                                     uint64_t poison, int64_t max_programs, bool with_launches) {
  PayloadWriter writer;
  writer.add_bytes(*recording.file.bytes);
  Json parameters = Json::array(), inputs = Json::array();
  std::vector<BlobView> values = match_parameters(plan, oracle);
  for (size_t i = 0; i < values.size(); ++i) {
    parameters.push_back(Json::array({plan.parameters[i].name, writer.add(values[i])}));
  }
  for (const OracleInput& input : oracle.inputs) {
    inputs.push_back(input.is_tensor ? writer.add(input.tensor) : Json{{"value", input.value}});
  }
  InterpretRequest request;
  request.args = {{"recording", recording.file.bytes->size()},
                  {"case", plan.name},
                  {"launches", with_launches},
                  {"parameters", parameters},
                  {"inputs", inputs},
                  {"poison", poison},
                  {"max_programs", max_programs}};
  request.payload = writer.take();
  return request;
}

Parsed<Interpretation> parse_interpretation(Blob blob, const OracleAnswer& oracle) {
  try {
    Interpretation out;
    out.blob = std::move(blob);
    const Json& header = out.blob.header;
    strict::object(header, "answer", {"nonce", "ok", "outputs", "inputs_after", "programs", "guards_broken"});
    out.programs = strict::integer(header["programs"], "programs", 0, INT64_MAX);
    out.guards_intact = strict::array(header["guards_broken"], "guards_broken", 1 << 20).empty();
    out.outputs = tensors_from(header["outputs"], out.blob.tensors());
    strict::array(header["inputs_after"], "inputs_after", oracle.inputs.size());
    if (header["inputs_after"].size() != oracle.inputs.size()) throw Tainted{"an answer with other inputs"};
    for (size_t i = 0; i < oracle.inputs.size(); ++i) {
      const Json& item = header["inputs_after"][i];
      if (!item.is_null() && !oracle.inputs[i].is_tensor) throw Tainted{"an answer with other inputs"};
      out.inputs_after.push_back(item.is_null() ? std::nullopt : std::optional(tensor_from(item, out.blob.tensors())));
    }
    return {std::move(out), ""};
  } catch (const Tainted& tainted) {
    return {std::nullopt, tainted.why};
  }
}

}  // namespace tritonrl
