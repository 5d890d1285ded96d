// SPDX-License-Identifier: Apache-2.0
#include "verify/judge/disturbance.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "verify/trace/call_rules.h"
#include "verify/trace/trace_graph.h"

namespace tritonrl {
namespace {

constexpr double kRoundings = 16;      // Of float32 and float64, a step,
constexpr double kRoundingsOfOne = 4;  // ... and of a number near one on the way.
constexpr double kBitOfTf32 = 0x1p-10;

double roundoff(at::ScalarType dtype) {
  switch (dtype) {
    case at::kDouble:
      return 0x1p-53;
    case at::kHalf:
      return 0x1p-11;
    case at::kBFloat16:
      return 0x1p-8;
    default:
      return 0x1p-24;
  }
}

// How far a number of that dtype is moved, relative to itself, where `terms` are summed.
double share(at::ScalarType dtype, double terms) {
  bool narrow = dtype == at::kHalf || dtype == at::kBFloat16;
  return roundoff(dtype) * std::max(narrow ? 2.0 : kRoundings, narrow ? 0.0 : std::sqrt(terms));
}

bool jumps(const std::string& name) {
  static const std::set<std::string> names = {
      "floor",        "ceil", "round",     "trunc",     "fix",   "frac",      "sign",          "sgn",
      "floor_divide", "fmod", "remainder", "heaviside", "histc", "threshold", "fake_quantize", "hardshrink"};
  return names.count(name) > 0;
}

// By way of a number near one: their error is a share of one, however small they are.
bool passes_one(const std::string& name) {
  static const std::set<std::string> names = {"elu",          "selu",
                                              "celu",         "tanh",
                                              "gelu",         "softplus",
                                              "mish",         "log_sigmoid",
                                              "log1p",        "expm1",
                                              "erf",          "erfc",
                                              "erfinv",       "asinh",
                                              "atanh",        "sinh",
                                              "tanhshrink",   "logit",
                                              "logsumexp",    "logaddexp",
                                              "logaddexp2",   "cosine_similarity",
                                              "logcumsumexp", "xlogy",
                                              "xlog1py",      "entr"};
  return names.count(name) > 0 || name.find("log_softmax") != std::string::npos ||
         name.find("loss") != std::string::npos || name.find("cross_entropy") != std::string::npos ||
         name.find("kl_div") != std::string::npos;
}

// Of a product's operands, what is only added to it.
bool is_addend(const std::string& name, const std::string& argument) {
  if (argument.find("bias") != std::string::npos || argument.find("mask") != std::string::npos) return true;
  return argument == "self" && (name.rfind("add", 0) == 0 || name == "baddbmm");
}

// Without the underscore of an operator in place.
std::string plain_name(const std::string& op) {
  std::string name = call_name(op);
  if (name.size() > 1 && name.back() == '_' && name[name.size() - 2] != '_') name.pop_back();
  return name;
}

double numel(const TraceValue& value) {
  double n = 1;
  for (int64_t size : value.shape) n *= static_cast<double>(size);
  return n;
}

// x with each element moved by up to `by` of itself.
at::Tensor moved(const at::Tensor& x, double by) {
  bool narrow = x.scalar_type() == at::kHalf || x.scalar_type() == at::kBFloat16;
  auto options = x.options().dtype(narrow ? at::kFloat : x.scalar_type());
  at::Tensor factor = at::empty(x.sizes(), options).uniform_(1 - by, 1 + by);
  at::Tensor y = at::mul(x, factor);
  return narrow ? y.to(x.scalar_type()) : y;
}

}  // namespace

at::Tensor in_tf32(const at::Tensor& tensor, bool round) {
  constexpr int32_t kLost = 0x1FFF;
  at::Tensor bits = tensor.contiguous().view(at::kInt);
  if (round) bits = at::add(bits, bits.bitwise_right_shift(13).bitwise_and_(1).add_(kLost / 2));
  at::Tensor cut = bits.bitwise_and(~kLost).view(at::kFloat);
  return round ? at::where(tensor.isfinite(), cut, tensor) : cut;
}

bool Disturbance::computes(const TraceStep& step) const {
  if (is_plumbing(step.op) || jumps(plain_name(step.op))) return false;
  return std::any_of(step.outs.begin(), step.outs.end(),
                     [this](int64_t id) { return is_floating(trace_.values[static_cast<size_t>(id)].dtype); });
}

double Disturbance::terms(const TraceStep& step) const {
  double out = 1, most = 1, next = 1;
  for (int64_t id : step.outs) out = std::max(out, numel(trace_.values[static_cast<size_t>(id)]));
  for (int64_t id : step.reads) {
    double n = numel(trace_.values[static_cast<size_t>(id)]);
    next = std::max(std::min(most, n), next);
    most = std::max(most, n);
  }
  if (is_product(step.op)) return std::max(1.0, std::sqrt(most * next / out));
  bool along = call_name(step.op).rfind("cum", 0) == 0 || call_name(step.op).find("logcum") == 0;
  return along ? most : std::max(1.0, most / out);
}

at::Tensor Disturbance::operand(const TraceStep& step, const std::string& name, const at::Tensor& operand) {
  if (!at::isFloatingType(operand.scalar_type()) || operand.numel() == 0 ||
      operand.unsafeGetTensorImpl()->is_wrapped_number())
    return operand;
  if (kind_ == Kind::kRoundings) {
    return computes(step) ? moved(operand, share(operand.scalar_type(), terms(step))) : operand;
  }
  bool rounded = is_product(step.op) && operand.scalar_type() == at::kFloat && !is_addend(call_name(step.op), name);
  if (!rounded) return operand;
  return kind_ == Kind::kScattered ? moved(operand, kBitOfTf32) : in_tf32(operand, kind_ == Kind::kRounded);
}

at::Tensor Disturbance::result(const TraceStep& step, const at::Tensor& result) {
  at::ScalarType dtype = result.scalar_type();
  if (kind_ != Kind::kRoundings || !at::isFloatingType(dtype) || result.numel() == 0 || !computes(step)) return result;
  double n = terms(step);
  at::Tensor out = result;
  if (n > kRoundings * kRoundings) out = moved(out, share(dtype, n));
  if (passes_one(plain_name(step.op))) {
    double by = share(dtype, 1) * kRoundingsOfOne / kRoundings;
    at::Tensor noise = at::empty(out.sizes(), out.options().dtype(at::kFloat)).uniform_(-by, by);
    out = at::add(out, noise.to(dtype));
  }
  return out;
}

}  // namespace tritonrl
