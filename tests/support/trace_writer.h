// SPDX-License-Identifier: Apache-2.0
// TraceWriter: makes traces (docs/trace.md) out of the structs of verify/trace/trace.h, for tests and fuzzing. It
// checks nothing, so that it can write what no recorder would; and a sample that uses everything the format has.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "verify/trace/call_rules.h"
#include "verify/trace/trace.h"

namespace tritonrl {

class TraceWriter {
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

  void argument(const TraceArg& arg) {
    using Kind = TraceArg::Kind;
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
        list(arg.list, [&](const TraceArg& item) { argument(item); });
        break;
      case Kind::kDescriptor:
        u32(static_cast<uint64_t>(arg.number));
        for (size_t i = 0; i < 3; ++i) {
          list(arg.list[i].list, [&](const TraceArg& size) { u64(static_cast<uint64_t>(size.number)); });
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

  void kernel(const TraceKernel& kernel) {
    text(kernel.name);
    text(kernel.source);
    u8(kernel.is_constexpr_function);
    u32(static_cast<uint64_t>(kernel.line));
    list(kernel.globals, [&](const TraceGlobal& global) {
      using Kind = TraceGlobal::Kind;
      text(global.name);
      u8(static_cast<uint64_t>(global.kind));
      if (global.kind == Kind::kJit) u32(static_cast<uint64_t>(global.kernel));
      if (global.kind == Kind::kConstexpr || global.kind == Kind::kValue) argument(global.value);
      if (global.kind == Kind::kModule || global.kind == Kind::kMember) text(global.path);
      if (global.kind == Kind::kMember) text(global.member);
    });
  }

  void cubin(const TraceCubin& cubin) {
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

  void step(const TraceStep& step) {
    u8(step.is_launch);
    if (!step.is_launch) {
      text(step.op);
      list(step.args, [&](const TraceArg& arg) { argument(arg); });
      named(step.kwargs);
      return structure(step.result);
    }
    u32(static_cast<uint64_t>(step.kernel));
    u32(static_cast<uint64_t>(step.line));
    list(step.choices, [&](const TraceChoice& choice) {
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

  void trace(const CaseTrace& trace) {
    text(trace.name);
    u32(trace.init_steps);
    u32(trace.input_steps);
    list(trace.values, [&](const TraceValue& value) {
      u8(static_cast<uint64_t>(value.dtype));
      u32(static_cast<uint64_t>(value.storage));
      u64(static_cast<uint64_t>(value.offset));
      u8(value.shape.size());
      for (int64_t size : value.shape) u64(static_cast<uint64_t>(size));
      for (int64_t stride : value.stride) u64(static_cast<uint64_t>(stride));
    });
    list(trace.inputs, [&](const TraceInput& input) {
      u8(input.value < 0);
      input.value < 0 ? text(input.literal.dump()) : u32(static_cast<uint64_t>(input.value));
    });
    list(trace.parameters, [&](const TraceParameter& parameter) {
      text(parameter.name);
      u32(static_cast<uint64_t>(parameter.value));
      u8(parameter.is_buffer);
      u8(parameter.has_bytes);
      if (!parameter.has_bytes) return;
      bytes(parameter.initial);
    });
    list(trace.tape, [&](const TraceStep& item) { step(item); });
    structure(trace.outputs);
    for (const char* what : {"import", "init", "forward", "compile", "total"}) {
      auto it = trace.seconds.find(what);
      f64(it == trace.seconds.end() ? 0 : it->second);
    }
    text(trace.notes.is_null() ? "{}" : trace.notes.dump());
  }

  std::string file(const TraceFile& file) {
    out_ = "TRPL";
    u32(2);
    list(file.kernels, [&](const TraceKernel& item) { kernel(item); });
    list(file.cubins, [&](const TraceCubin& item) { cubin(item); });
    list(file.specs, [&](const TraceSpec& item) { text(item.json.dump()); });
    list(file.cases, [&](const CaseTrace& item) { trace(item); });
    return std::move(out_);
  }

 private:
  template <class T>
  void put(T value) {
    out_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  std::string out_;
};

inline std::string write_trace_file(const TraceFile& file) { return TraceWriter().file(file); }
inline Parsed<TraceFile> parse_written(const TraceFile& file) {
  return parse_trace_file(std::make_shared<const std::string>(write_trace_file(file)));
}

// Parses bytes, and holds what comes out of it against itself: it may be walked, and written and parsed again to the
// same. "" when all is well, or when the bytes are refused.
inline std::string rewrite_fault(const std::string& bytes) {
  auto first = parse_trace_file(std::make_shared<const std::string>(bytes));
  if (!first) return first.why.empty() ? "refused without a reason" : "";
  for (const CaseTrace& trace : first.value->cases) {
    check_calls(trace, CallRules::kStrict);
    check_calls(trace, CallRules::kMixed);
  }
  std::string once = write_trace_file(*first.value);
  auto second = parse_trace_file(std::make_shared<const std::string>(once));
  if (!second) return cat("refused when written again: ", second.why);
  return write_trace_file(*second.value) == once ? "" : "reads as something else when written again";
}

// --- Pieces to build traces from.

inline TraceArg trace_arg(TraceArg::Kind kind, int64_t number = 0, std::string text = "",
                          std::vector<TraceArg> list = {}) {
  TraceArg arg;
  arg.kind = kind;
  arg.number = number;
  arg.text = std::move(text);
  arg.list = std::move(list);
  return arg;
}
inline TraceArg tensor_arg(int64_t id) { return trace_arg(TraceArg::Kind::kTensor, id); }
inline TraceArg int_arg(int64_t n) { return trace_arg(TraceArg::Kind::kInt, n); }
inline TraceArg float_arg(double real) {
  TraceArg arg = trace_arg(TraceArg::Kind::kFloat);
  arg.real = real;
  return arg;
}

// Contiguous, float32.
inline TraceValue trace_value(int64_t storage, std::vector<int64_t> shape = {4, 8}, int64_t offset = 0) {
  TraceValue value;
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

inline TraceStep call_step(std::string op, std::vector<int64_t> args, int64_t out) {
  TraceStep step;
  step.op = std::move(op);
  for (int64_t id : args) step.args.push_back(tensor_arg(id));
  step.result = leaf(out);
  return step;
}

// Of kernel 0 and cubin 0, with parameters p0, p1, ... and n.
inline TraceStep launch_step(std::vector<int64_t> args, std::array<int64_t, 3> grid = {4, 1, 1}) {
  TraceStep step;
  step.is_launch = true;
  step.kernel = 0;
  step.line = 7;
  TraceChoice choice;
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
inline TraceFile file_of(std::vector<CaseTrace> cases) {
  TraceFile file;
  TraceKernel kernel;
  kernel.name = "k";
  kernel.source = "def k(): pass";
  kernel.line = 3;
  file.kernels.push_back(std::move(kernel));
  TraceCubin cubin;
  cubin.function = "k";
  cubin.num_warps = 4;
  cubin.num_stages = 3;
  cubin.image = "\177ELF";
  file.cubins.push_back(std::move(cubin));
  file.cases = std::move(cases);
  return file;
}

// As a candidate's is recorded: specs where file_of() has cubins, of tensors of float32 and whole numbers.
inline TraceFile with_specs(TraceFile file) {
  for (size_t i = 0; i < file.cubins.size(); ++i) {
    TraceSpec spec;
    spec.kernel = file.cubins[i].kernel;
    spec.json = {{"kernel", spec.kernel},
                 {"key", cat("k", i)},
                 {"signature", Json::object()},
                 {"constants", Json::object()},
                 {"attrs", Json::object()},
                 {"options", Json::object()},
                 {"arch", 90}};
    file.specs.push_back(std::move(spec));
  }
  file.cubins.clear();
  for (CaseTrace& trace : file.cases) {
    for (TraceStep& step : trace.tape) {
      for (TraceChoice& choice : step.choices) {
        choice.spec = std::exchange(choice.cubin, -1);
        if (choice.spec < 0) continue;
        Json& spec = file.specs[static_cast<size_t>(choice.spec)].json;
        spec["options"] = {{"num_warps", choice.num_warps}, {"num_stages", choice.num_stages}};
        for (const auto& [name, arg] : choice.args) {
          spec["signature"][name] = arg.kind == TraceArg::Kind::kTensor ? "*fp32" : "i32";
        }
      }
    }
  }
  return file;
}

// x -> y = empty_like(x); launch(x, y); return y
inline CaseTrace small_trace(const std::string& name = "full", std::vector<int64_t> shape = {4, 8}) {
  CaseTrace trace;
  trace.name = name;
  trace.values = {trace_value(0, shape), trace_value(1, shape)};
  trace.inputs.resize(1);
  trace.inputs[0].value = 0;
  trace.tape = {call_step("aten.empty_like.default", {0}, 1), launch_step({0, 1})};
  trace.outputs = leaf(1);
  return trace;
}

// Every kind of everything. Views into the program's own constants.
inline TraceFile sample_trace_file() {
  using Kind = TraceArg::Kind;
  using NestKind = Nest<int64_t>::Kind;
  TraceFile file = file_of({});
  TraceKernel user;
  user.name = "user";
  user.source = "def user(x): return k(x)  # \u00fc";
  user.is_constexpr_function = true;
  user.line = 12;
  auto global = [&](const char* name, TraceGlobal::Kind kind) -> TraceGlobal& {
    user.globals.emplace_back();
    user.globals.back().name = name;
    user.globals.back().kind = kind;
    return user.globals.back();
  };
  global("k", TraceGlobal::Kind::kJit).kernel = 0;
  global("BLOCK", TraceGlobal::Kind::kConstexpr).value = int_arg(64);
  global("dtype", TraceGlobal::Kind::kValue).value = trace_arg(Kind::kTritonDtype, 0, "float32");
  global("tl", TraceGlobal::Kind::kModule).path = "triton.language";
  TraceGlobal& member = global("exp", TraceGlobal::Kind::kMember);
  member.path = "triton.language.math";
  member.member = "exp";
  global("other", TraceGlobal::Kind::kOpaque);
  file.kernels.push_back(user);

  TraceCubin& cubin = file.cubins[0];
  cubin.signature = {"*fp32", "*fp32", "i32", "constexpr"};
  cubin.constants = {{"BLOCK", int_arg(-1)}, {"f", trace_arg(Kind::kFunction, 1)}};
  cubin.num_ctas = 2;
  cubin.cluster = {2, 1, 1};
  cubin.shared = 4096;
  cubin.global_scratch = 128;
  cubin.profile_scratch = 64;
  cubin.cooperative = cubin.dependent_launch = true;

  CaseTrace full = small_trace();  // 0 = x, 1 = y.
  full.values.push_back(trace_value(2, {2}));
  full.values.push_back(trace_value(3, {}));
  full.values.back().dtype = Dtype::kInt64;
  full.values.push_back(trace_value(1, {2, 8}, 16));
  full.inputs.emplace_back();
  full.inputs.back().literal = {1, {{"tuple", {2.5, nullptr, "three"}}}};
  TraceParameter weight;
  weight.name = "linear.weight";
  weight.value = 2;
  TraceParameter constant;
  constant.name = "constant:0";
  constant.value = 3;
  constant.is_buffer = constant.has_bytes = true;
  constant.initial = "8 bytes.";
  full.parameters = {weight, constant};
  TraceStep many = call_step("aten.everything.default", {1, 2}, 4);
  many.args.insert(many.args.end(),
                   {trace_arg(Kind::kNone), int_arg(INT64_MIN), float_arg(-INFINITY), float_arg(0.1),
                    trace_arg(Kind::kBool, 1), trace_arg(Kind::kText, 0, "mean"),
                    trace_arg(Kind::kList, 0, "", {int_arg(1), trace_arg(Kind::kList, 0, "", {tensor_arg(3)})})});
  many.kwargs = {{"dtype", trace_arg(Kind::kDtype, 3)},
                 {"device", trace_arg(Kind::kDevice, 1)},
                 {"layout", trace_arg(Kind::kLayout, 0, "strided")},
                 {"memory_format", trace_arg(Kind::kMemoryFormat, 0, "channels_last")}};
  Nest<int64_t> nothing;
  many.result = group(NestKind::kTuple, {leaf(4), nothing, group(NestKind::kList, {})});
  full.tape.push_back(std::move(many));
  TraceStep& launch = full.tape[1];
  auto sizes = [](int64_t n) { return trace_arg(Kind::kList, 0, "", {int_arg(n), int_arg(8)}); };
  launch.choices[0].args.emplace_back("d",
                                      trace_arg(Kind::kDescriptor, 2, "", {sizes(4), sizes(8), sizes(2), int_arg(1)}));
  launch.choices.push_back(launch.choices[0]);
  launch.choices[1].grid = {8, 2, 1};
  launch.choices[1].cubin = -1;
  Nest<int64_t> text;
  text.value = "text";
  full.outputs = group(NestKind::kDict, {leaf(1), group(NestKind::kTuple, {leaf(4), text})}, {"y", "rest"});
  full.seconds = {{"import", 0.25}, {"init", 0.5}, {"forward", 1}, {"compile", 2}, {"total", 3.75}};

  CaseTrace reference;  // __init__ and get_inputs() on the tape, another dtype and a value without elements.
  reference.name = "reference";
  reference.values = {trace_value(0, {3}), trace_value(1, {3}), trace_value(2, {0, 3})};
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
