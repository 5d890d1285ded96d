// SPDX-License-Identifier: Apache-2.0
#include "verify/plan.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "base/text.h"

namespace tritonrl {
namespace {

constexpr size_t kMaxValues = 50000;
constexpr size_t kMaxSteps = 20000;
constexpr size_t kMaxArguments = 1024;
constexpr int64_t kMaxId = int64_t{1} << 53;
constexpr int64_t kMaxElements = int64_t{1} << 40;
constexpr int64_t kMaxGrid = int64_t{1} << 31;

class PlanParser {
 public:
  PlanParser(int64_t kernels, int64_t cubins) : kernels_(kernels), cubins_(cubins) {}

  Plan parse(const Json& json) {
    strict::object(json, "plan", {"values", "inputs", "parameters", "tape", "outputs"});
    for (const Json& item : strict::array(json["values"], "values", kMaxValues)) read_value(item);
    for (const Json& item : strict::array(json["inputs"], "inputs", kMaxArguments)) {
      int64_t id = item.is_null() ? -1 : known(item);
      if (id >= 0) introduce(id);
      plan_.inputs.push_back(id);
    }
    for (const Json& item : strict::array(json["parameters"], "parameters", kMaxValues)) {
      if (strict::array(item, "parameter", 2).size() != 2) throw Tainted{"a malformed parameter"};
      int64_t id = known(item[1]);
      introduce(id);
      plan_.parameters.emplace_back(strict::text(item[0], "name", 1024), id);
    }
    for (const Json& item : strict::array(json["tape"], "tape", kMaxSteps)) read_step(item);
    plan_.outputs = strict::nest<int64_t>(json["outputs"], "id", [&](const Json& leaf) {
      strict::object(leaf, "output", {"id"});
      return defined(leaf["id"]);
    });
    plan_.json = json;
    return std::move(plan_);
  }

 private:
  void read_value(const Json& json) {
    strict::object(json, "value", {"id", "shape", "stride", "offset", "dtype", "storage"});
    PlanValue value;
    value.id = strict::integer(json["id"], "id", 0, kMaxId);
    value.shape = strict::sizes(json["shape"], "shape", 0, kMaxElements);
    value.stride = strict::sizes(json["stride"], "stride", 0, kMaxElements);
    value.offset = strict::integer(json["offset"], "offset", 0, kMaxElements);
    value.dtype = strict::dtype(json["dtype"], "dtype");
    value.storage = strict::integer(json["storage"], "storage", 0, kMaxId);
    if (value.shape.size() != value.stride.size()) throw Tainted{"shape and stride of a value disagree"};
    strict::numel(value.shape, "value");
    int64_t last = value.offset;
    for (size_t i = 0; i < value.shape.size(); ++i) {
      if (value.shape[i] > 1 && value.stride[i] > kMaxElements / value.shape[i]) throw Tainted{"a value is too large"};
      last += std::max<int64_t>(value.shape[i] - 1, 0) * value.stride[i];
    }
    if (last > kMaxElements) throw Tainted{"a value is too large"};
    int64_t id = value.id;
    if (!plan_.values.emplace(id, std::move(value)).second) throw Tainted{"two values have one id"};
  }

  int64_t known(const Json& json) {
    int64_t id = strict::integer(json, "id", 0, kMaxId);
    if (!plan_.values.count(id)) throw Tainted{"an id that names no value"};
    return id;
  }

  int64_t defined(const Json& json) {
    int64_t id = known(json);
    if (!defined_.count(id)) throw Tainted{"a value is used before it exists"};
    return id;
  }

  // An input or a parameter: brings its storage. Two of them may share one (tied weights).
  void introduce(int64_t id) {
    const PlanValue& value = plan_.values.at(id);
    int64_t& size = storage_bytes_[value.storage];
    size = std::max(size, value.end_byte());
    defined_.insert(id);
  }

  void read_argument(const Json& json, PlanStep* step, int depth = 0) {
    if (depth > 4 || !json.is_object() || json.size() != 1) throw Tainted{"a malformed argument"};
    const std::string& kind = json.begin().key();
    const Json& body = json.begin().value();
    if (kind == "t") {
      step->reads.push_back(defined(body));
    } else if (kind == "l") {
      for (const Json& item : strict::array(body, "list", kMaxArguments)) read_argument(item, step, depth + 1);
    } else if (kind == "i") {
      if (!body.is_number_integer()) throw Tainted{"a malformed integer argument"};
    } else if (kind == "f") {
      // JSON has no infinities: they come as text.
      bool named = body.is_string() && (body == "inf" || body == "-inf" || body == "nan");
      if (!body.is_number() && !named) throw Tainted{"a malformed float argument"};
    } else if (kind == "b") {
      strict::boolean(body, "argument");
    } else if (kind == "n") {
      if (!body.is_null()) throw Tainted{"a malformed null argument"};
    } else if (kind == "dtype" || kind == "device" || kind == "layout" || kind == "memory_format" || kind == "s") {
      strict::text(body, "argument", 4096);
    } else {
      throw Tainted{"an unknown kind of argument"};
    }
  }

  void read_step(const Json& json) {
    PlanStep step;
    step.is_launch = json.is_object() && json.contains("launch");
    step.is_launch ? read_launch(json, &step) : read_op(json, &step);
    plan_.tape.push_back(std::move(step));
  }

  void read_launch(const Json& json, PlanStep* step) {
    strict::object(json, "launch", {"launch", "grid", "args", "num_warps", "num_stages", "cubin", "line"});
    step->kernel = strict::integer(json["launch"], "kernel", 0, kernels_ - 1);
    auto grid = strict::sizes(json["grid"], "grid", 0, kMaxGrid, 3);
    if (grid.size() != 3) throw Tainted{"a grid needs three sizes"};
    std::copy(grid.begin(), grid.end(), step->grid.begin());
    for (const Json& item : strict::array(json["args"], "arguments", kMaxArguments)) {
      if (strict::array(item, "argument", 2).size() != 2) throw Tainted{"a malformed argument"};
      strict::text(item[0], "argument name", 256);
      read_argument(item[1], step);
    }
    strict::integer(json["num_warps"], "num_warps", 1, 64);
    strict::integer(json["num_stages"], "num_stages", 0, 64);
    if (!json["cubin"].is_null()) strict::integer(json["cubin"], "cubin", 0, cubins_ - 1);
    if (!json["line"].is_null()) strict::integer(json["line"], "line", 0, 10000000);
  }

  void read_op(const Json& json, PlanStep* step) {
    strict::object(json, "step", {"op", "args", "kwargs", "out"});
    step->op = strict::text(json["op"], "op", 256);
    for (const Json& item : strict::array(json["args"], "arguments", kMaxArguments)) read_argument(item, step);
    if (!json["kwargs"].is_object() || json["kwargs"].size() > 64) throw Tainted{"malformed keyword arguments"};
    for (const auto& [name, item] : json["kwargs"].items()) read_argument(item, step);
    auto out = strict::nest<int64_t>(json["out"], "id", [&](const Json& leaf) {
      strict::object(leaf, "result", {"id"});
      return known(leaf["id"]);
    });
    for_each_leaf(out, [&](int64_t id, const std::string&) { step->outs.push_back(id); });
    define_results(*step);
  }

  // A result is an argument again (in place), a view of an argument's storage, or brings a storage of its own.
  void define_results(const PlanStep& step) {
    std::set<int64_t> readable;
    for (int64_t id : step.reads) readable.insert(plan_.values.at(id).storage);
    std::map<int64_t, int64_t> fresh;
    for (int64_t id : step.outs) {
      const PlanValue& value = plan_.values.at(id);
      auto storage = storage_bytes_.find(value.storage);
      if (storage == storage_bytes_.end()) {
        int64_t& size = fresh[value.storage];
        size = std::max(size, value.end_byte());
      } else if (!readable.count(value.storage)) {
        throw Tainted{"a step returns memory it was not given"};
      } else if (value.end_byte() > storage->second) {
        throw Tainted{"a view reaches beyond its memory"};
      }
    }
    storage_bytes_.insert(fresh.begin(), fresh.end());
    defined_.insert(step.outs.begin(), step.outs.end());
  }

  Plan plan_;
  int64_t kernels_, cubins_;
  std::unordered_set<int64_t> defined_;
  std::map<int64_t, int64_t> storage_bytes_;
};

// "aten.mul.Tensor" -> "mul".
std::string base_name(const std::string& op) {
  auto parts = split(op, '.');
  return parts.size() >= 2 && parts[0] == "aten" ? parts[1] : "";
}

const std::set<std::string>& plumbing() {
  static const std::set<std::string> names = {
      // Allocation and constant filling.
      "empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "zeros", "zeros_like",
      "new_zeros", "ones", "ones_like", "new_ones", "full", "full_like", "new_full", "scalar_tensor", "arange", "fill",
      "fill_", "zero_", "zero",
      // Views.
      "view", "_unsafe_view", "reshape", "_reshape_alias", "view_as", "reshape_as", "expand", "expand_as",
      "broadcast_to", "permute", "transpose", "transpose_", "t", "t_", "mT", "numpy_T", "swapaxes", "swapdims",
      "movedim", "moveaxis", "squeeze", "squeeze_", "unsqueeze", "unsqueeze_", "flatten", "unflatten", "ravel", "slice",
      "select", "narrow", "as_strided", "detach", "detach_", "alias", "unbind", "split", "split_with_sizes", "chunk",
      "diagonal", "unfold", "view_as_real", "lift", "lift_fresh", "set_", "resize_", "resize_as_", "data", "atleast_1d",
      "atleast_2d", "atleast_3d",
      // Copies, casts and layout.
      "copy_", "copy", "clone", "contiguous", "_to_copy", "to", "type_as", "cat", "concat", "stack", "constant_pad_nd",
      "pad", "repeat", "tile", "flip", "roll", "slice_scatter", "select_scatter", "cuda", "half", "float", "bfloat16"};
  return names;
}

// Writes the whole of its first argument, whatever was there before.
bool overwrites(const std::string& op) {
  std::string name = base_name(op);
  return name == "copy_" || name == "fill_" || name == "zero_";
}

// Takes its arguments' shapes and not their data.
bool allocates(const std::string& op) {
  std::string name = base_name(op);
  return name.rfind("new_", 0) == 0 || name.rfind("empty", 0) == 0 || name.rfind("zeros", 0) == 0 ||
         name.rfind("ones", 0) == 0 || name.rfind("full", 0) == 0;
}

bool covers(const PlanValue& value, int64_t storage_bytes) {
  int64_t n = item_size(value.dtype);
  for (int64_t size : value.shape) n *= size;
  return value.offset == 0 && n >= storage_bytes && value.end_byte() >= storage_bytes;
}

}  // namespace

int64_t PlanValue::end_byte() const {
  int64_t last = offset;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) return offset * item_size(dtype);
    last += (shape[i] - 1) * stride[i];
  }
  return (last + 1) * item_size(dtype);
}

int64_t Plan::launches() const {
  return std::count_if(tape.begin(), tape.end(), [](const PlanStep& step) { return step.is_launch; });
}

Parsed<Plan> parse_plan(const Json& json, int64_t kernels, int64_t cubins) {
  try {
    return {PlanParser(kernels, cubins).parse(json), ""};
  } catch (const Tainted& tainted) {
    return {std::nullopt, tainted.why};
  }
}

Json without_launches(const Plan& plan) {
  Json out = plan.json;
  Json tape = Json::array();
  for (const Json& step : plan.json["tape"]) {
    if (!step.contains("launch")) tape.push_back(step);
  }
  out["tape"] = std::move(tape);
  return out;
}

bool is_plumbing(const std::string& op) { return plumbing().count(base_name(op)) > 0; }

PolicyFinding check_policy(const Plan& plan, CallPolicy policy) {
  PolicyFinding finding;
  std::set<std::string> delegated;
  std::set<int64_t> reached;                 // Storages a launch may have written, or data derived from them.
  std::map<int64_t, int64_t> storage_bytes;  // Largest extent seen.
  for (const auto& [id, value] : plan.values) {
    int64_t& size = storage_bytes[value.storage];
    size = std::max(size, value.end_byte());
  }
  auto storage_of = [&](int64_t id) { return plan.values.at(id).storage; };
  bool any_launch = false, only_empty = true;
  for (const PlanStep& step : plan.tape) {
    if (step.is_launch) {
      any_launch = true;
      if (std::count(step.grid.begin(), step.grid.end(), 0) > 0) continue;  // An empty grid computes nothing.
      only_empty = false;
      for (int64_t id : step.reads) reached.insert(storage_of(id));
      continue;
    }
    if (!is_plumbing(step.op)) delegated.insert(step.op);
    size_t first_source = 0;
    if (overwrites(step.op) && !step.reads.empty()) {
      first_source = 1;
      const PlanValue& target = plan.values.at(step.reads[0]);
      if (covers(target, storage_bytes[target.storage])) reached.erase(target.storage);
    }
    if (allocates(step.op)) continue;
    bool flows = false;
    for (size_t i = first_source; i < step.reads.size(); ++i) flows |= reached.count(storage_of(step.reads[i])) > 0;
    if (!flows) continue;
    for (int64_t id : step.outs) reached.insert(storage_of(id));
  }
  finding.delegated_ops.assign(delegated.begin(), delegated.end());

  std::set<int64_t> given;
  for (int64_t id : plan.inputs) {
    if (id >= 0) given.insert(storage_of(id));
  }
  for (const auto& [name, id] : plan.parameters) given.insert(storage_of(id));
  bool reaches = false, untouched_input = false;
  for_each_leaf(plan.outputs, [&](int64_t id, const std::string&) {
    bool hit = reached.count(storage_of(id)) > 0;
    reaches |= hit;
    untouched_input |= !hit && given.count(storage_of(id)) > 0;
  });

  std::string problem;
  if (!any_launch) {
    problem = "no Triton kernel is launched";
  } else if (only_empty) {
    problem = "every Triton launch has an empty grid";
  } else if (policy == CallPolicy::kStrict && !delegated.empty()) {
    problem = cat("library calls do part of the work: ", join(finding.delegated_ops, ", "));
  } else if (!reaches) {
    problem = "no Triton launch reaches an output";
  } else if (untouched_input) {
    problem = "an output is one of the inputs";
  }
  finding.ok = problem.empty();
  finding.message = problem;
  return finding;
}

}  // namespace tritonrl
