// SPDX-License-Identifier: Apache-2.0
#include "verify/recording.h"

#include <algorithm>
#include <set>

#include "base/text.h"

namespace tritonrl {
namespace {

constexpr int64_t kMaxKernels = 256;
constexpr int64_t kMaxCubins = 1024;

bool alike(const TensorView& a, const TensorView& b) { return a.shape == b.shape && a.dtype == b.dtype; }

std::vector<int64_t> contiguous(const std::vector<int64_t>& shape) {
  std::vector<int64_t> stride(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) stride[i - 1] = stride[i] * std::max<int64_t>(shape[i], 1);
  return stride;
}

void check_kernels(const Json& kernels) {
  auto count = static_cast<int64_t>(strict::array(kernels, "kernels", kMaxKernels).size());
  for (const Json& kernel : kernels) {
    strict::object(kernel, "kernel", {"name", "source", "globals", "line"}, {"decorator"});
    strict::text(kernel["name"], "name", 256);
    strict::text(kernel["source"], "source", 1 << 20);
    strict::integer(kernel["line"], "line", 0, 10000000);
    if (kernel.contains("decorator")) strict::text(kernel["decorator"], "decorator", 64);
    for (const Json& global : strict::array(kernel["globals"], "globals", 4096)) {
      strict::object(global, "global", {"name", "kind"}, {"kernel", "value", "path", "member"});
      strict::text(global["name"], "name", 256);
      std::string kind = strict::text(global["kind"], "kind", 32);
      if (kind == "jit") {
        if (!global.contains("kernel")) throw Tainted{"a helper kernel without an index"};
        strict::integer(global["kernel"], "kernel", 0, count - 1);
      } else if (kind == "module" || kind == "member") {
        if (!global.contains("path")) throw Tainted{"a module without a path"};
        strict::text(global["path"], "path", 256);
        if (global.contains("member")) strict::text(global["member"], "member", 256);
      } else if (kind != "constexpr" && kind != "value" && kind != "opaque") {
        throw Tainted{"an unknown kind of global"};
      }
    }
  }
}

int64_t check_cubins(const Json& cubins, int64_t kernels, std::string_view area) {
  for (const Json& cubin : strict::array(cubins, "cubins", kMaxCubins)) {
    if (!cubin.is_object() || !cubin.contains("kernel") || !cubin.contains("tensor"))
      throw Tainted{"a malformed cubin"};
    strict::integer(cubin["kernel"], "kernel", 0, kernels - 1);
    TensorView image = tensor_from(cubin["tensor"], area);
    if (image.dtype != Dtype::kUint8 || image.bytes.substr(0, 4) != "\177ELF") throw Tainted{"a cubin that is none"};
  }
  return static_cast<int64_t>(cubins.size());
}

std::vector<RecordedParameter> read_parameters(const Json& json, std::string_view area) {
  std::vector<RecordedParameter> out;
  std::set<std::string> names;
  for (const Json& item : strict::array(json, "parameters", 10000)) {
    strict::object(item, "parameter", {"name", "shape", "dtype", "matched"}, {"init_hash", "tensor"});
    RecordedParameter parameter;
    parameter.name = strict::text(item["name"], "name", 1024);
    parameter.initial.shape = strict::sizes(item["shape"], "shape", 0, int64_t{1} << 40);
    parameter.initial.dtype = strict::dtype(item["dtype"], "dtype");
    strict::boolean(item["matched"], "matched");
    if (item.contains("tensor")) {
      TensorView tensor = tensor_from(item["tensor"], area);
      if (tensor.shape != parameter.initial.shape || tensor.dtype != parameter.initial.dtype) {
        throw Tainted{"a parameter and its bytes disagree"};
      }
      parameter.initial = tensor;
      parameter.has_bytes = true;
      if (item.contains("init_hash")) parameter.init_hash = strict::text(item["init_hash"], "hash", 128);
    }
    if (!names.insert(parameter.name).second) throw Tainted{"two parameters have one name"};
    out.push_back(std::move(parameter));
  }
  return out;
}

void check_case(const RecordedCase& recorded, const OracleAnswer& oracle, bool compiled) {
  const Plan& plan = recorded.plan;
  if (plan.inputs.size() != oracle.inputs.size()) throw Tainted{"the recording has another number of inputs"};
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    if ((plan.inputs[i] >= 0) != oracle.inputs[i].is_tensor) throw Tainted{"the recording has other inputs"};
    if (plan.inputs[i] < 0) continue;
    const PlanValue& value = plan.values.at(plan.inputs[i]);
    const TensorView& tensor = oracle.inputs[i].tensor;
    if (value.shape != tensor.shape || value.dtype != tensor.dtype) throw Tainted{"the recording has other inputs"};
  }
  for (const RecordedParameter& parameter : recorded.parameters) {
    bool known = parameter.has_bytes;
    for (const OracleParameter& reference : oracle.parameters) {
      known |= reference.name == parameter.name && alike(reference.tensor, parameter.initial);
    }
    if (!known) throw Tainted{"a parameter without a value"};
  }
  for (const auto& [name, id] : plan.parameters) {
    auto it = std::find_if(recorded.parameters.begin(), recorded.parameters.end(),
                           [&name = name](const RecordedParameter& p) { return p.name == name; });
    const PlanValue& value = plan.values.at(id);
    if (it == recorded.parameters.end() || it->initial.shape != value.shape || it->initial.dtype != value.dtype) {
      throw Tainted{"the recording has parameters that its module has not"};
    }
  }
  for (const Json& step : plan.json["tape"]) {
    if (compiled && step.contains("launch") && step["cubin"].is_null()) throw Tainted{"a launch without a cubin"};
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
    cases.push_back({{"name", request.spec.name},
                     {"constants", request.spec.constants},
                     {"init_inputs", request.oracle->init_inputs},
                     {"reference_parameters", parameters},
                     {"inputs", inputs},
                     {"compile", !request.spec.tiny}});
  }
  return {{"task_source", task.source},
          {"candidate_source", code},
          {"weight_seed", weight_seed},
          {"init_inputs", cases[0]["init_inputs"]},
          {"reference_parameters", cases[0]["reference_parameters"]},
          {"cases", cases},
          {"arch", 90}};
}

Parsed<Recording> parse_recording(Blob blob, const std::vector<CaseRequest>& requests) {
  try {
    Recording recording;
    recording.blob = std::move(blob);
    const Json& header = recording.blob.header;
    std::string_view area = recording.blob.tensors();
    strict::object(header, "recording", {"nonce", "ok", "plan_version", "cases", "kernels", "cubins"},
                   {"parameters", "seconds"});
    if (header["plan_version"] != 0) throw Tainted{"an unknown version of the plan"};
    check_kernels(header["kernels"]);
    recording.kernels = header["kernels"];
    auto kernels = static_cast<int64_t>(recording.kernels.size());
    recording.cubins = check_cubins(header["cubins"], kernels, area);
    strict::array(header["cases"], "cases", requests.size());
    if (header["cases"].size() != requests.size()) throw Tainted{"the recording lacks a case"};
    for (size_t i = 0; i < requests.size(); ++i) {
      const Json& item = strict::object(header["cases"][i], "case", {"name", "plan", "parameters"}, {"seconds"});
      const CaseRequest& request = requests[i];
      if (strict::text(item["name"], "name", 256) != request.spec.name) throw Tainted{"the recording has another case"};
      auto plan = parse_plan(item["plan"], kernels, recording.cubins);
      if (!plan) throw Tainted{plan.why};
      RecordedCase recorded{std::move(*plan.value), read_parameters(item["parameters"], area)};
      check_case(recorded, *request.oracle, !request.spec.tiny);
      recording.cases.emplace(request.spec.name, std::move(recorded));
    }
    return {std::move(recording), ""};
  } catch (const Tainted& tainted) {
    return {std::nullopt, tainted.why};
  }
}

std::vector<TensorView> match_parameters(const RecordedCase& recorded, const OracleAnswer& oracle) {
  size_t count = recorded.parameters.size();
  std::vector<const OracleParameter*> matched(count, nullptr);
  std::set<const OracleParameter*> taken;
  for (size_t i = 0; i < count; ++i) {
    for (const OracleParameter& reference : oracle.parameters) {
      if (reference.name != recorded.parameters[i].name || !alike(reference.tensor, recorded.parameters[i].initial))
        continue;
      matched[i] = &reference;
      taken.insert(&reference);
    }
  }
  for (size_t i = 0; i < count; ++i) {
    const RecordedParameter& own = recorded.parameters[i];
    for (const OracleParameter& reference : oracle.parameters) {
      if (matched[i] || own.init_hash.empty() || taken.count(&reference)) continue;
      if (reference.init_hash != own.init_hash || !alike(reference.tensor, own.initial)) continue;
      matched[i] = &reference;
      taken.insert(&reference);
    }
  }
  std::vector<TensorView> values;
  for (const auto& [name, id] : recorded.plan.parameters) {
    for (size_t i = 0; i < count; ++i) {
      if (recorded.parameters[i].name == name) {
        values.push_back(matched[i] ? matched[i]->tensor : recorded.parameters[i].initial);
      }
    }
  }
  return values;
}

InterpretRequest interpret_arguments(const Recording& recording, const RecordedCase& recorded,
                                     const OracleAnswer& oracle, uint64_t poison, int64_t max_programs,
                                     bool with_launches) {
  PayloadWriter writer;
  Json parameters = Json::array(), inputs = Json::array();
  std::vector<TensorView> values = match_parameters(recorded, oracle);
  for (size_t i = 0; i < values.size(); ++i) {
    parameters.push_back(Json::array({recorded.plan.parameters[i].first, writer.add(values[i])}));
  }
  for (const OracleInput& input : oracle.inputs) {
    inputs.push_back(input.is_tensor ? writer.add(input.tensor) : Json{{"value", input.value}});
  }
  InterpretRequest request;
  request.args = {{"plan", with_launches ? recorded.plan.json : without_launches(recorded.plan)},
                  {"kernels", recording.kernels},
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
