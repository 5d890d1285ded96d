// SPDX-License-Identifier: Apache-2.0
// TraceFile: what the recorder wrote down of a candidate (docs/trace.md): its kernels, and a CaseTrace for each case.
//
// A CaseTrace is one forward call as an SSA tape of ATen calls and Triton launches over values (tensors), which are
// views of storages. It comes out of a process that ran the candidate's code, so it is parsed strictly: unknown
// members, dangling ids, views beyond their storage, values used before they exist are all `tampered`. A trace that
// parses is safe to *describe* (its sizes and counts are bounded); it is still run in a sandbox only.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "verify/sandbox/blob.h"

namespace tritonrl {

struct TraceValue {
  std::vector<int64_t> shape, stride;  // In elements.
  int64_t offset = 0;                  // In elements of this value's dtype, from the start of its storage.
  Dtype dtype = Dtype::kFloat32;
  int64_t storage = 0;

  int64_t end_byte() const;  // Just past the last byte it touches, from the start of its storage.
};

// One argument of a step.
struct TraceArg {
  enum class Kind {
    kNone,
    kTensor,        // number: value id
    kInt,           // number
    kFloat,         // real
    kBool,          // number: 0 or 1
    kText,          // text
    kList,          // list
    kDtype,         // number: a Dtype
    kDevice,        // number: 0 cpu, 1 cuda
    kLayout,        // text: "strided"
    kMemoryFormat,  // text: "channels_last"
    kTritonDtype,   // text: "float32"
    kFunction,      // number: kernel index
    kDescriptor,    // number: value id; list: shape, strides, block shape (lists of kInt), padding (kInt)
  };
  Kind kind = Kind::kNone;
  int64_t number = 0;
  double real = 0;
  std::string text;
  std::vector<TraceArg> list;
  bool operator==(const TraceArg&) const = default;
};
using NamedArgs = std::vector<std::pair<std::string, TraceArg>>;

// One way to launch a kernel; an autotuner has several.
struct TraceChoice {
  std::array<int64_t, 3> grid{};
  int64_t num_warps = 0, num_stages = 0;
  int64_t cubin = -1;  // -1: the case was recorded without compiling.
  int64_t spec = -1;   // What a cubin for it is made from; -1: it was compiled.
  NamedArgs args;      // By parameter, constexpr ones included, in signature order.
};

struct TraceStep {
  bool is_launch = false;
  std::vector<int64_t> reads;  // Ids of all values among the arguments, in order, each once per mention.

  // ATen calls.
  std::string op;  // "aten.mul.Tensor".
  std::vector<TraceArg> args;
  NamedArgs kwargs;
  Nest<int64_t> result;
  std::vector<int64_t> outs;  // The result's leaves.

  // Launches.
  int64_t kernel = -1;
  int64_t line = 0;                  // Of the launch in the candidate's source; 0 = unknown.
  std::vector<TraceChoice> choices;  // At least one; the first is the default.
};

struct TraceInput {
  int64_t value = -1;  // -1: not a tensor, see `literal`.
  Json literal;
};

struct TraceParameter {
  std::string name;
  int64_t value = 0;
  bool is_buffer = false;
  bool has_bytes = false;    // A constant made from Python numbers:
  std::string_view initial;  //   row-major bytes, inside the trace's.
};

struct CaseTrace {
  std::string name;                // Of the case.
  std::vector<TraceValue> values;  // By id.
  std::vector<TraceInput> inputs;
  std::vector<TraceParameter> parameters;
  std::vector<TraceStep> tape;
  size_t init_steps = 0, input_steps = 0;  // tape = __init__ | get_inputs | forward.
  Nest<int64_t> outputs;
  std::map<std::string, double> seconds;  // As the recorder claims.
  Json notes;

  int64_t launches() const;
  double programs() const;  // Of all launches, as first configured.
  double bytes() const;     // Of all storages, as far as values reach.
};

struct TraceGlobal {
  enum class Kind { kJit, kConstexpr, kValue, kModule, kMember, kOpaque };
  std::string name;
  Kind kind = Kind::kOpaque;
  int64_t kernel = -1;
  TraceArg value;
  std::string path, member;
};

struct TraceKernel {
  std::string name, source;
  bool is_constexpr_function = false;
  int64_t line = 0;
  std::vector<TraceGlobal> globals;
};

struct TraceCubin {
  int64_t kernel = 0;
  std::string function;                // Entry point in the image.
  std::vector<std::string> signature;  // "*fp32", "i32", "constexpr", "(*fp32;(i32;constexpr))" for a tuple, ...
  NamedArgs constants;
  int64_t num_warps = 0, num_stages = 0, num_ctas = 1;
  std::array<int64_t, 3> cluster{1, 1, 1};
  int64_t shared = 0, global_scratch = 0, profile_scratch = 0;  // Bytes; scratch per program instance.
  bool cooperative = false, dependent_launch = false;
  Json descriptors;        // How Triton wants its TMA descriptors made; [] = none.
  std::string_view image;  // Inside the trace's bytes.
};

// What a cubin is compiled from, besides the kernel's text: a `compile` job's (worker/PROTOCOL.md).
struct TraceSpec {
  int64_t kernel = 0;
  std::string key;  // As the recorder claims; what counts is the key of the bytes that are compiled.
  Json json;
};

// A whole trace (docs/trace.md). Views point into `bytes`, which it owns.
struct TraceFile {
  std::shared_ptr<const std::string> bytes;
  std::vector<std::shared_ptr<const std::string>> more_bytes;  // Of cubins that were linked in.
  std::vector<TraceKernel> kernels;
  std::vector<TraceCubin> cubins;
  std::vector<TraceSpec> specs;
  std::vector<CaseTrace> cases;

  const CaseTrace* find(const std::string& name) const;  // nullptr when there is no such case.
};

// Strict, see docs/trace.md; never throws. Thread rule: any thread.
Parsed<TraceFile> parse_trace_file(std::shared_ptr<const std::string> bytes);

}  // namespace tritonrl
