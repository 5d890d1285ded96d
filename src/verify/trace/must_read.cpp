// SPDX-License-Identifier: Apache-2.0
#include "verify/trace/must_read.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"

namespace tritonrl {
namespace {

// All elements of every tensor argument count for the result, whatever they are.
bool reads_all(const std::string& name) {
  static const std::set<std::string> names = {"add",
                                              "sub",
                                              "rsub",
                                              "mul",
                                              "div",
                                              "true_divide",
                                              "pow",
                                              "exp",
                                              "exp2",
                                              "expm1",
                                              "log",
                                              "log2",
                                              "log10",
                                              "log1p",
                                              "sqrt",
                                              "rsqrt",
                                              "reciprocal",
                                              "square",
                                              "abs",
                                              "neg",
                                              "sin",
                                              "cos",
                                              "tan",
                                              "tanh",
                                              "sinh",
                                              "cosh",
                                              "asinh",
                                              "atan",
                                              "erf",
                                              "erfc",
                                              "sigmoid",
                                              "log_sigmoid",
                                              "relu",
                                              "relu6",
                                              "gelu",
                                              "silu",
                                              "mish",
                                              "elu",
                                              "selu",
                                              "celu",
                                              "leaky_relu",
                                              "prelu",
                                              "softplus",
                                              "softsign",
                                              "hardtanh",
                                              "hardswish",
                                              "hardsigmoid",
                                              "clamp",
                                              "clamp_min",
                                              "clamp_max",
                                              "maximum",
                                              "minimum",
                                              "sign",
                                              "floor",
                                              "ceil",
                                              "round",
                                              "trunc",
                                              "addcmul",
                                              "addcdiv",
                                              "lerp",
                                              "sum",
                                              "mean",
                                              "var",
                                              "std",
                                              "amax",
                                              "amin",
                                              "max",
                                              "min",
                                              "argmax",
                                              "argmin",
                                              "prod",
                                              "norm",
                                              "linalg_vector_norm",
                                              "logsumexp",
                                              "cumsum",
                                              "cumprod",
                                              "logcumsumexp",
                                              "softmax",
                                              "log_softmax",
                                              "layer_norm",
                                              "rms_norm",
                                              "group_norm",
                                              "mm",
                                              "bmm",
                                              "addmm",
                                              "baddbmm",
                                              "matmul",
                                              "linear",
                                              "mv",
                                              "dot",
                                              "mse_loss",
                                              "l1_loss",
                                              "smooth_l1_loss",
                                              "huber_loss",
                                              "_to_copy",
                                              "clone"};
  return names.count(name) > 0;
}

// The result has every element of the argument.
bool keeps_all(const std::string& name) {
  static const std::set<std::string> names = {"view",      "_unsafe_view", "reshape", "permute",   "transpose",
                                              "t",         "squeeze",      "expand",  "unsqueeze", "flatten",
                                              "unflatten", "contiguous",   "detach",  "alias",     "to"};
  return names.count(name) > 0;
}

// "aten.relu_.default" -> "relu"; "" for what has an out argument.
std::string plain_name(const std::string& op) {
  auto parts = split(op, '.');
  if (parts.size() != 3 || parts[2].find("out") != std::string::npos) return "";
  std::string name = parts[1];
  return name.size() > 1 && name.back() == '_' ? name.substr(0, name.size() - 1) : name;
}

}  // namespace

int64_t bytes_to_read(const CaseTrace& reference) {
  size_t forward = reference.init_steps + reference.input_steps;
  // Backwards from the outputs: the storages whose content counts.
  auto storage_of = [&](int64_t id) { return reference.values[static_cast<size_t>(id)].storage; };
  std::set<int64_t> wanted, read;
  visit_leaves(reference.outputs, [&](int64_t id) { wanted.insert(storage_of(id)); });
  for (size_t at = reference.tape.size(); at-- > forward;) {
    const TraceStep& step = reference.tape[at];
    std::string name = plain_name(step.op);
    if (step.is_launch || (!reads_all(name) && !keeps_all(name))) return 0;
    bool counts =
        std::any_of(step.outs.begin(), step.outs.end(), [&](int64_t id) { return wanted.count(storage_of(id)) > 0; });
    if (!counts) continue;
    for (int64_t id : step.reads) {
      wanted.insert(storage_of(id));
      if (reads_all(name)) read.insert(storage_of(id));
    }
  }
  std::map<int64_t, int64_t> bytes;  // By storage.
  auto count = [&](int64_t id) {
    const TraceValue& value = reference.values[static_cast<size_t>(id)];
    if (read.count(value.storage) == 0) return;
    int64_t elements = 1;
    for (size_t i = 0; i < value.shape.size(); ++i) elements *= value.stride[i] == 0 ? 1 : value.shape[i];
    bytes[value.storage] = std::max(bytes[value.storage], elements * item_size(value.dtype));
  };
  for (const TraceInput& input : reference.inputs) {
    if (input.value >= 0) count(input.value);
  }
  for (const TraceParameter& parameter : reference.parameters) count(parameter.value);
  int64_t sum = 0;
  for (const auto& [storage, size] : bytes) sum += size;
  return sum;
}

}  // namespace tritonrl
