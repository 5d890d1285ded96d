// SPDX-License-Identifier: Apache-2.0
// PlanWriter: makes recordings (docs/plan.md) out of the structs of plan.h, for tests and fuzzing only. It checks
// nothing, so that it can write what no recorder would; and a sample that uses everything the format has.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "verify/plan.h"

namespace tritonrl {

class PlanWriter {
 public:
  void u8(uint64_t value) { put(static_cast<uint8_t>(value)); }
  void u32(uint64_t value) { put(static_cast<uint32_t>(value)); }
  void u64(uint64_t value) { put(value); }
  void f64(double value) { put(value); }
  void text(std::string_view value) {
    u32(value.size());
    out_ += value;
  }
  void bytes(std::string_view value) {
    u64(value.size());
    out_ += value;
  }
  // A list's count, then each item.
  template <class List, class Fn>
  void list(const List& items, const Fn& fn) {
    u32(items.size());
    for (const auto& item : items) fn(item);
  }

  void argument(const PlanArg& arg) {
    using Kind = PlanArg::Kind;
    u8(static_cast<uint64_t>(arg.kind));
    switch (arg.kind) {
      case Kind::kNone:
        break;
      case Kind::kTensor:
      case Kind::kFunction:
        u32(static_cast<uint64_t>(arg.number));
        break;
      case Kind::kInt:
        u64(static_cast<uint64_t>(arg.number));
        break;
      case Kind::kFloat:
        f64(arg.real);
        break;
      case Kind::kBool:
      case Kind::kDtype:
      case Kind::kDevice:
        u8(static_cast<uint64_t>(arg.number));
        break;
      case Kind::kText:
      case Kind::kLayout:
      case Kind::kMemoryFormat:
      case Kind::kTritonDtype:
        text(arg.text);
        break;
      case Kind::kList:
        list(arg.list, [&](const PlanArg& item) { argument(item); });
        break;
      case Kind::kDescriptor:
        u32(static_cast<uint64_t>(arg.number));
        for (size_t i = 0; i < 3; ++i) {
          list(arg.list[i].list, [&](const PlanArg& size) { u64(static_cast<uint64_t>(size.number)); });
        }
        u8(static_cast<uint64_t>(arg.list[3].number));
    }
  }

  void named(const NamedArgs& args) {
    list(args, [&](const auto& item) {
      text(item.first);
      argument(item.second);
    });
  }

  void structure(const Nest<int64_t>& nest) {
    using Kind = Nest<int64_t>::Kind;
    u8(static_cast<uint64_t>(nest.kind));
    if (nest.kind == Kind::kLeaf) return u32(static_cast<uint64_t>(nest.leaf));
    if (nest.kind == Kind::kValue) return text(nest.value.dump());
    u32(nest.children.size());
    for (size_t i = 0; i < nest.children.size(); ++i) {
      if (nest.kind == Kind::kDict) text(nest.keys[i]);
      structure(nest.children[i]);
    }
  }

  void kernel(const PlanKernel& kernel) {
    text(kernel.name);
    text(kernel.source);
    u8(kernel.is_constexpr_function);
    u32(static_cast<uint64_t>(kernel.line));
    list(kernel.globals, [&](const PlanGlobal& global) {
      using Kind = PlanGlobal::Kind;
      text(global.name);
      u8(static_cast<uint64_t>(global.kind));
      if (global.kind == Kind::kJit) u32(static_cast<uint64_t>(global.kernel));
      if (global.kind == Kind::kConstexpr || global.kind == Kind::kValue) argument(global.value);
      if (global.kind == Kind::kModule || global.kind == Kind::kMember) text(global.path);
      if (global.kind == Kind::kMember) text(global.member);
    });
  }

  void cubin(const PlanCubin& cubin) {
    u32(static_cast<uint64_t>(cubin.kernel));
    text(cubin.function);
    list(cubin.signature, [&](const std::string& type) { text(type); });
    named(cubin.constants);
    for (int64_t n : {cubin.num_warps, cubin.num_stages, cubin.num_ctas, cubin.cluster[0], cubin.cluster[1],
                      cubin.cluster[2], cubin.shared}) {
      u32(static_cast<uint64_t>(n));
    }
    u64(static_cast<uint64_t>(cubin.global_scratch));
    u64(static_cast<uint64_t>(cubin.profile_scratch));
    u8((cubin.cooperative ? 1 : 0) | (cubin.dependent_launch ? 2 : 0));
    text(cubin.descriptors.is_null() ? "[]" : cubin.descriptors.dump());
    bytes(cubin.image);
  }

  void step(const PlanStep& step) {
    u8(step.is_launch);
    if (!step.is_launch) {
      text(step.op);
      list(step.args, [&](const PlanArg& arg) { argument(arg); });
      named(step.kwargs);
      return structure(step.result);
    }
    u32(static_cast<uint64_t>(step.kernel));
    u32(static_cast<uint64_t>(step.line));
    list(step.choices, [&](const PlanChoice& choice) {
      for (int64_t size : choice.grid) u32(static_cast<uint64_t>(size));
      u32(static_cast<uint64_t>(choice.num_warps));
      u32(static_cast<uint64_t>(choice.num_stages));
      u8(choice.cubin >= 0);
      if (choice.cubin >= 0) u32(static_cast<uint64_t>(choice.cubin));
      u8(choice.spec >= 0);
      if (choice.spec >= 0) u32(static_cast<uint64_t>(choice.spec));
      named(choice.args);
    });
  }

  void plan(const Plan& plan) {
    text(plan.name);
    u32(plan.init_steps);
    u32(plan.input_steps);
    list(plan.values, [&](const PlanValue& value) {
      u8(static_cast<uint64_t>(value.dtype));
      u32(static_cast<uint64_t>(value.storage));
      u64(static_cast<uint64_t>(value.offset));
      u8(value.shape.size());
      for (int64_t size : value.shape) u64(static_cast<uint64_t>(size));
      for (int64_t stride : value.stride) u64(static_cast<uint64_t>(stride));
    });
    list(plan.inputs, [&](const PlanInput& input) {
      u8(input.value < 0);
      input.value < 0 ? text(input.literal.dump()) : u32(static_cast<uint64_t>(input.value));
    });
    list(plan.parameters, [&](const PlanParameter& parameter) {
      text(parameter.name);
      u32(static_cast<uint64_t>(parameter.value));
      u8((parameter.is_buffer ? 1 : 0) | (parameter.matched ? 2 : 0));
      u8(parameter.has_bytes);
      if (!parameter.has_bytes) return;
      text(parameter.init_hash);
      bytes(parameter.initial);
    });
    list(plan.tape, [&](const PlanStep& item) { step(item); });
    structure(plan.outputs);
    for (const char* what : {"import", "init", "forward", "compile", "total"}) {
      auto it = plan.seconds.find(what);
      f64(it == plan.seconds.end() ? 0 : it->second);
    }
    text(plan.notes.is_null() ? "{}" : plan.notes.dump());
  }

  std::string file(const PlanFile& file) {
    out_ = "TRPL";
    u32(1);
    list(file.kernels, [&](const PlanKernel& item) { kernel(item); });
    list(file.cubins, [&](const PlanCubin& item) { cubin(item); });
    list(file.specs, [&](const PlanSpec& item) { text(item.json.dump()); });
    list(file.cases, [&](const Plan& item) { plan(item); });
    return std::move(out_);
  }

 private:
  template <class T>
  void put(T value) {
    out_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  std::string out_;
};

inline std::string write_plan_file(const PlanFile& file) { return PlanWriter().file(file); }
inline Parsed<PlanFile> parse_written(const PlanFile& file) {
  return parse_plan_file(std::make_shared<const std::string>(write_plan_file(file)));
}

// Parses bytes, and holds what comes out of it against itself: it may be walked, and written and parsed again to the
// same. "" when all is well, or when the bytes are refused.
inline std::string rewrite_fault(const std::string& bytes) {
  auto first = parse_plan_file(std::make_shared<const std::string>(bytes));
  if (!first) return first.why.empty() ? "refused without a reason" : "";
  for (const Plan& plan : first.value->cases) {
    check_policy(plan, CallPolicy::kStrict);
    check_policy(plan, CallPolicy::kMixed);
  }
  std::string once = write_plan_file(*first.value);
  auto second = parse_plan_file(std::make_shared<const std::string>(once));
  if (!second) return cat("refused when written again: ", second.why);
  return write_plan_file(*second.value) == once ? "" : "reads as something else when written again";
}

// --- Pieces to build plans from.

inline PlanArg plan_arg(PlanArg::Kind kind, int64_t number = 0, std::string text = "", std::vector<PlanArg> list = {}) {
  PlanArg arg;
  arg.kind = kind;
  arg.number = number;
  arg.text = std::move(text);
  arg.list = std::move(list);
  return arg;
}
inline PlanArg tensor_arg(int64_t id) { return plan_arg(PlanArg::Kind::kTensor, id); }
inline PlanArg int_arg(int64_t n) { return plan_arg(PlanArg::Kind::kInt, n); }
inline PlanArg float_arg(double real) {
  PlanArg arg = plan_arg(PlanArg::Kind::kFloat);
  arg.real = real;
  return arg;
}

// Contiguous, float32.
inline PlanValue plan_value(int64_t storage, std::vector<int64_t> shape = {4, 8}, int64_t offset = 0) {
  PlanValue value;
  value.storage = storage;
  value.offset = offset;
  value.stride.assign(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) value.stride[i - 1] = value.stride[i] * shape[i];
  value.shape = std::move(shape);
  return value;
}

inline Nest<int64_t> leaf(int64_t id) {
  Nest<int64_t> out;
  out.kind = Nest<int64_t>::Kind::kLeaf;
  out.leaf = id;
  return out;
}
inline Nest<int64_t> group(Nest<int64_t>::Kind kind, std::vector<Nest<int64_t>> children,
                           std::vector<std::string> keys = {}) {
  Nest<int64_t> out;
  out.kind = kind;
  out.children = std::move(children);
  out.keys = std::move(keys);
  return out;
}

inline PlanStep call_step(std::string op, std::vector<int64_t> args, int64_t out) {
  PlanStep step;
  step.op = std::move(op);
  for (int64_t id : args) step.args.push_back(tensor_arg(id));
  step.result = leaf(out);
  return step;
}

// Of kernel 0 and cubin 0, with parameters p0, p1, ... and n.
inline PlanStep launch_step(std::vector<int64_t> args, std::array<int64_t, 3> grid = {4, 1, 1}) {
  PlanStep step;
  step.is_launch = true;
  step.kernel = 0;
  step.line = 7;
  PlanChoice choice;
  choice.grid = grid;
  choice.num_warps = 4;
  choice.num_stages = 3;
  choice.cubin = 0;
  for (size_t i = 0; i < args.size(); ++i) choice.args.emplace_back(cat("p", i), tensor_arg(args[i]));
  choice.args.emplace_back("n", int_arg(8));
  step.choices.push_back(std::move(choice));
  return step;
}

// Around the given cases: one kernel, one cubin.
inline PlanFile file_of(std::vector<Plan> cases) {
  PlanFile file;
  PlanKernel kernel;
  kernel.name = "k";
  kernel.source = "def k(): pass";
  kernel.line = 3;
  file.kernels.push_back(std::move(kernel));
  PlanCubin cubin;
  cubin.function = "k";
  cubin.num_warps = 4;
  cubin.num_stages = 3;
  cubin.image = "\177ELF";
  file.cubins.push_back(std::move(cubin));
  file.cases = std::move(cases);
  return file;
}

// As a candidate's is recorded: specs where file_of() has cubins.
inline PlanFile with_specs(PlanFile file) {
  for (size_t i = 0; i < file.cubins.size(); ++i) {
    PlanSpec spec;
    spec.kernel = file.cubins[i].kernel;
    spec.json = {{"kernel", spec.kernel}, {"key", cat("k", i)}, {"constants", Json::object()}};
    file.specs.push_back(std::move(spec));
  }
  file.cubins.clear();
  for (Plan& plan : file.cases) {
    for (PlanStep& step : plan.tape) {
      for (PlanChoice& choice : step.choices) choice.spec = std::exchange(choice.cubin, -1);
    }
  }
  return file;
}

// x -> y = empty_like(x); launch(x, y); return y
inline Plan small_plan(const std::string& name = "full", std::vector<int64_t> shape = {4, 8}) {
  Plan plan;
  plan.name = name;
  plan.values = {plan_value(0, shape), plan_value(1, shape)};
  plan.inputs.resize(1);
  plan.inputs[0].value = 0;
  plan.tape = {call_step("aten.empty_like.default", {0}, 1), launch_step({0, 1})};
  plan.outputs = leaf(1);
  return plan;
}

// Every kind of everything. Views into the program's own constants.
inline PlanFile sample_plan_file() {
  using Kind = PlanArg::Kind;
  using NestKind = Nest<int64_t>::Kind;
  PlanFile file = file_of({});
  PlanKernel user;
  user.name = "user";
  user.source = "def user(x): return k(x)  # \u00fc";
  user.is_constexpr_function = true;
  user.line = 12;
  auto global = [&](const char* name, PlanGlobal::Kind kind) -> PlanGlobal& {
    user.globals.emplace_back();
    user.globals.back().name = name;
    user.globals.back().kind = kind;
    return user.globals.back();
  };
  global("k", PlanGlobal::Kind::kJit).kernel = 0;
  global("BLOCK", PlanGlobal::Kind::kConstexpr).value = int_arg(64);
  global("dtype", PlanGlobal::Kind::kValue).value = plan_arg(Kind::kTritonDtype, 0, "fp32");
  global("tl", PlanGlobal::Kind::kModule).path = "triton.language";
  PlanGlobal& member = global("exp", PlanGlobal::Kind::kMember);
  member.path = "triton.language.math";
  member.member = "exp";
  global("other", PlanGlobal::Kind::kOpaque);
  file.kernels.push_back(user);

  PlanCubin& cubin = file.cubins[0];
  cubin.signature = {"*fp32", "*fp32", "i32", "constexpr"};
  cubin.constants = {{"BLOCK", int_arg(-1)}, {"f", plan_arg(Kind::kFunction, 1)}};
  cubin.num_ctas = 2;
  cubin.cluster = {2, 1, 1};
  cubin.shared = 4096;
  cubin.global_scratch = 128;
  cubin.profile_scratch = 64;
  cubin.cooperative = cubin.dependent_launch = true;

  Plan full = small_plan();  // 0 = x, 1 = y.
  full.values.push_back(plan_value(2, {2}));
  full.values.push_back(plan_value(3, {}));
  full.values.back().dtype = Dtype::kInt64;
  full.values.push_back(plan_value(1, {2, 8}, 16));
  full.inputs.emplace_back();
  full.inputs.back().literal = {1, {{"tuple", {2.5, nullptr, "three"}}}};
  PlanParameter weight;
  weight.name = "linear.weight";
  weight.value = 2;
  weight.matched = true;
  PlanParameter constant;
  constant.name = "constant.0";
  constant.value = 3;
  constant.is_buffer = constant.has_bytes = true;
  constant.init_hash = "0123456789abcdef";
  constant.initial = "8 bytes.";
  full.parameters = {weight, constant};
  PlanStep many = call_step("aten.everything.default", {1, 2}, 4);
  many.args.insert(many.args.end(),
                   {plan_arg(Kind::kNone), int_arg(INT64_MIN), float_arg(-INFINITY), float_arg(0.1),
                    plan_arg(Kind::kBool, 1), plan_arg(Kind::kText, 0, "mean"),
                    plan_arg(Kind::kList, 0, "", {int_arg(1), plan_arg(Kind::kList, 0, "", {tensor_arg(3)})})});
  many.kwargs = {{"dtype", plan_arg(Kind::kDtype, 3)},
                 {"device", plan_arg(Kind::kDevice, 1)},
                 {"layout", plan_arg(Kind::kLayout, 0, "strided")},
                 {"memory_format", plan_arg(Kind::kMemoryFormat, 0, "channels_last")}};
  Nest<int64_t> nothing;
  many.result = group(NestKind::kTuple, {leaf(4), nothing, group(NestKind::kList, {})});
  full.tape.push_back(std::move(many));
  PlanStep& launch = full.tape[1];
  auto sizes = [](int64_t n) { return plan_arg(Kind::kList, 0, "", {int_arg(n), int_arg(8)}); };
  launch.choices[0].args.emplace_back("d",
                                      plan_arg(Kind::kDescriptor, 2, "", {sizes(4), sizes(8), sizes(2), int_arg(1)}));
  launch.choices.push_back(launch.choices[0]);
  launch.choices[1].grid = {8, 2, 1};
  launch.choices[1].cubin = -1;
  Nest<int64_t> text;
  text.value = "text";
  full.outputs = group(NestKind::kDict, {leaf(1), group(NestKind::kTuple, {leaf(4), text})}, {"y", "rest"});
  full.seconds = {{"import", 0.25}, {"init", 0.5}, {"forward", 1}, {"compile", 2}, {"total", 3.75}};

  Plan reference;  // __init__ and get_inputs() on the tape, another dtype and a value without elements.
  reference.name = "reference";
  reference.values = {plan_value(0, {3}), plan_value(1, {3}), plan_value(2, {0, 3})};
  reference.values[1].dtype = Dtype::kBfloat16;
  reference.inputs.resize(1);
  reference.inputs[0].value = 1;
  reference.parameters.resize(1);
  reference.parameters[0].name = "w";
  reference.tape = {call_step("aten.empty.memory_format", {}, 0), call_step("aten.normal_.default", {0}, 0),
                    call_step("aten.rand.default", {}, 1), call_step("aten.mul.Tensor", {0, 1}, 2)};
  reference.init_steps = 2;
  reference.input_steps = 1;
  reference.outputs = leaf(2);
  reference.notes = {{"init_inputs", {8}}, {"constants", {{"N", 8}}}};
  file.cases = {full, reference};
  return file;
}

}  // namespace tritonrl
