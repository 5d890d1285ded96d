// SPDX-License-Identifier: Apache-2.0
#include "verify/trace/trace_graph.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "verify/trace/call_rules.h"

namespace tritonrl {
namespace {

constexpr int64_t kSmallestSize = 8;

bool is_view(const std::string& name) {
  static const std::set<std::string> names = {"view",   "_unsafe_view", "reshape", "_reshape_alias", "expand",
                                              "repeat", "as_strided",   "flatten", "unflatten"};
  return names.count(name) > 0;
}

bool is_commutative(const std::string& name) {
  return name == "add" || name == "mul" || name == "maximum" || name == "minimum" || name == "eq" || name == "ne" ||
         name == "logical_and" || name == "logical_or";
}

class Hasher {
 public:
  Hasher(const CaseTrace& trace, bool loose) : trace_(trace), loose_(loose) {}

  std::string run() {
    for (size_t i = 0; i < trace_.parameters.size(); ++i) give(trace_.parameters[i].value, "weight");
    for (size_t i = 0; i < trace_.inputs.size(); ++i) {
      if (trace_.inputs[i].value >= 0) give(trace_.inputs[i].value, cat("input ", i));
    }
    for (size_t at = trace_.init_steps + trace_.input_steps; at < trace_.tape.size(); ++at) step(trace_.tape[at]);
    std::string out;
    visit_leaves(trace_.outputs, [&](int64_t id) { out += colour(id) + ";"; });
    return "trace:" + content_hash(out);
  }

 private:
  const TraceValue& value(int64_t id) const { return trace_.values.at(static_cast<size_t>(id)); }

  void give(int64_t id, const std::string& role) {
    colours_[id] = cat(role, " ", to_string(value(id).dtype), " rank ", value(id).shape.size());
  }

  // Of a value; one that nobody described was made in __init__.
  std::string colour(int64_t id) {
    auto it = colours_.find(id);
    if (it != colours_.end()) return it->second;
    give(id, "made before");
    return colours_[id];
  }

  std::string argument(const TraceArg& arg, const std::set<int64_t>& sizes, bool view) {
    using Kind = TraceArg::Kind;
    switch (arg.kind) {
      case Kind::kTensor:
        return colour(arg.number);
      case Kind::kInt:
        if (loose_) return "n";
        if (view || (arg.number >= kSmallestSize && sizes.count(arg.number))) return "size";
        return cat(arg.number);
      case Kind::kFloat:
        return loose_ ? "n" : cat("f", arg.real);
      case Kind::kBool:
        return arg.number ? "true" : "false";
      case Kind::kText:
      case Kind::kLayout:
      case Kind::kMemoryFormat:
      case Kind::kTritonDtype:
        return "'" + arg.text + "'";
      case Kind::kDtype:
        return cat("dtype", arg.number);
      case Kind::kList: {
        std::vector<std::string> parts;
        for (const TraceArg& item : arg.list) parts.push_back(argument(item, sizes, view));
        // How many sizes a view has is its result's rank already.
        return view ? "[]" : "[" + join(parts, ",") + "]";
      }
      default:
        return "-";
    }
  }

  void step(const TraceStep& step) {
    std::string name = call_name(step.op);
    bool in_place = name.size() > 1 && name.back() == '_' && name[name.size() - 2] != '_';
    if (in_place) name.pop_back();
    std::set<int64_t> sizes;
    for (const auto* ids : {&step.reads, &step.outs}) {
      for (int64_t id : *ids) sizes.insert(value(id).shape.begin(), value(id).shape.end());
    }
    std::vector<std::string> parts;
    for (const TraceArg& arg : step.args) parts.push_back(argument(arg, sizes, is_view(name)));
    bool tensors = step.args.size() >= 2 && step.args[0].kind == TraceArg::Kind::kTensor &&
                   step.args[1].kind == TraceArg::Kind::kTensor;
    if (is_commutative(name) && tensors) std::sort(parts.begin(), parts.begin() + 2);
    for (const auto& [key, arg] : step.kwargs) {
      if (arg.kind != TraceArg::Kind::kDevice) parts.push_back(key + "=" + argument(arg, sizes, is_view(name)));
    }
    std::string hash = content_hash(cat(name, "(", join(parts, ","), ")"));
    if (in_place && !step.reads.empty()) {  // Whoever looks at that memory sees the new values.
      int64_t storage = value(step.reads[0]).storage;
      for (size_t id = 0; id < trace_.values.size(); ++id) {
        if (trace_.values[id].storage == storage && colours_.count(static_cast<int64_t>(id))) {
          colours_[static_cast<int64_t>(id)] = hash;
        }
      }
    }
    for (size_t i = 0; i < step.outs.size(); ++i) {
      colours_[step.outs[i]] =
          cat(step.outs.size() > 1 ? cat(hash, "[", i, "]") : hash, " rank ", value(step.outs[i]).shape.size());
    }
  }

  const CaseTrace& trace_;
  bool loose_;
  std::map<int64_t, std::string> colours_;
};

}  // namespace

std::string call_name(const std::string& op) {
  auto parts = split(op, '.');
  return parts.size() > 1 ? parts[1] : op;
}

GraphHashes graph_hashes(const CaseTrace& trace) { return {Hasher(trace, false).run(), Hasher(trace, true).run()}; }

int64_t count_compute_ops(const CaseTrace& trace) {
  int64_t count = 0;
  for (size_t at = trace.init_steps + trace.input_steps; at < trace.tape.size(); ++at) {
    count += !trace.tape[at].is_launch && !is_plumbing(trace.tape[at].op);
  }
  return count;
}

bool draws_random_numbers(const CaseTrace& trace) {
  static const std::set<std::string> names = {"rand",
                                              "randn",
                                              "randint",
                                              "randperm",
                                              "rand_like",
                                              "randn_like",
                                              "randint_like",
                                              "normal",
                                              "uniform",
                                              "bernoulli",
                                              "random",
                                              "exponential",
                                              "cauchy",
                                              "log_normal",
                                              "geometric",
                                              "multinomial",
                                              "poisson",
                                              "binomial",
                                              "dropout",
                                              "native_dropout",
                                              "alpha_dropout",
                                              "feature_dropout",
                                              "feature_alpha_dropout",
                                              "rrelu_with_noise"};
  for (size_t at = trace.init_steps + trace.input_steps; at < trace.tape.size(); ++at) {
    std::string name = call_name(trace.tape[at].op);
    if (!name.empty() && name.back() == '_') name.pop_back();
    if (names.count(name) > 0) return true;
  }
  return false;
}

bool is_product(const std::string& op) {
  static const std::set<std::string> names = {
      "mm",   "bmm",      "matmul",    "addmm",     "addbmm",   "baddbmm",       "mv",           "addmv",        "dot",
      "vdot", "inner",    "tensordot", "einsum",    "linear",   "bilinear",      "_trilinear",   "chain_matmul", "lstm",
      "gru",  "rnn_tanh", "rnn_relu",  "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"};
  std::string name = call_name(op);
  return names.count(name) > 0 || name.find("conv") != std::string::npos ||
         name.find("attention") != std::string::npos || name.find("linalg") != std::string::npos;
}

bool has_products(const CaseTrace& trace) {
  return std::any_of(trace.tape.begin() + static_cast<ptrdiff_t>(trace.init_steps + trace.input_steps),
                     trace.tape.end(), [](const TraceStep& step) { return !step.is_launch && is_product(step.op); });
}

int level_of(int64_t compute_ops) { return compute_ops <= 1 ? 1 : compute_ops <= kMaxFusion ? 2 : 3; }

Recorded describe(const CaseTrace& trace) {
  GraphHashes hashes = graph_hashes(trace);
  Recorded out;
  out.compute_ops = count_compute_ops(trace);
  out.level = level_of(out.compute_ops);
  out.graph = hashes.graph;
  out.loose_graph = hashes.loose;
  return out;
}

std::vector<Dtype> output_dtypes(const CaseTrace& trace) {
  std::vector<Dtype> dtypes;
  visit_leaves(trace.outputs, [&](int64_t id) { dtypes.push_back(trace.values[static_cast<size_t>(id)].dtype); });
  return dtypes;
}

}  // namespace tritonrl
