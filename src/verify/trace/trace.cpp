// SPDX-License-Identifier: Apache-2.0
#include "verify/trace/trace.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"
#include "trace_limits.h"
#include "verify/trace/byte_reader.h"
#include "verify/trace/trace_flow.h"
#include "verify/trace/trace_words.h"

namespace tritonrl {
namespace {

using ArgKind = TraceArg::Kind;

constexpr uint32_t kVersion = 2;
constexpr std::array<int64_t, 3> kMaxGrid = {kMaxGridX, kMaxGridYz, kMaxGridYz};

class TraceFileReader {
 public:
  explicit TraceFileReader(std::string_view bytes) : in_(bytes) {}

  void read(TraceFile* file) {
    if (in_.left() > kMaxBytes) throw Tainted{"the trace is too large"};
    if (in_.raw(4) != "TRPL") throw Tainted{"this is no trace"};
    if (in_.u32() != kVersion) throw Tainted{"an unknown version of the trace"};
    for (size_t n = in_.count("kernels", kMaxKernels, 17); n > 0; --n) {
      file->kernels.push_back(kernel());
      ++kernels_;
    }
    for (size_t n = in_.count("cubins", kMaxCubins, 79); n > 0; --n) file->cubins.push_back(cubin());
    cubins_ = &file->cubins;
    for (size_t n = in_.count("specs", kMaxCubins, 6); n > 0; --n) file->specs.push_back(spec());
    specs_ = &file->specs;
    std::set<std::string> names;
    for (size_t n = in_.count("cases", kMaxCases, 79); n > 0; --n) {
      file->cases.push_back(trace());
      if (!names.insert(file->cases.back().name).second) throw Tainted{"two cases have one name"};
    }
    if (in_.left() > 0) throw Tainted{"the trace continues after its end"};
  }

 private:
  // --- Small things.

  void item() {
    if (++items_ > kMaxItems) throw Tainted{"the trace has too many parts"};
  }

  size_t list(const char* what, size_t item_bytes = 1) { return in_.count(what, kMaxList, item_bytes); }
  std::string name(const char* what) { return in_.text(what, kMaxName); }
  Dtype dtype() { return static_cast<Dtype>(in_.below(kDtypeCount, "dtype")); }
  std::string word(const char* what, bool (*known)(const std::string&)) {
    std::string text = in_.text(what, kMaxText);
    if (!known(text)) throw Tainted{cat("an unknown ", what)};
    return text;
  }
  int64_t line() { return in_.small("a line", 0, kMaxLine); }

  int64_t kernel_index() {
    if (kernels_ == 0) throw Tainted{"an index that names no kernel"};
    return in_.small("a kernel's index", 0, static_cast<int64_t>(kernels_) - 1);
  }

  int64_t value_id() {
    if (!trace_ || trace_->values.empty()) throw Tainted{"an id that names no value"};
    return in_.small("a value's id", 0, static_cast<int64_t>(trace_->values.size()) - 1);
  }

  Json json(const char* what, size_t most) {
    std::string text = in_.text(what, most);
    json_bytes_ += text.size();
    if (json_bytes_ > kMaxJsonInAll) throw Tainted{"the trace holds too much JSON"};
    return strict::json(text, what);
  }

  // --- Arguments.

  // Adds the ids of the values it names to `reads`; where there is none, tensors are refused.
  TraceArg argument(std::vector<int64_t>* reads, int depth = 0) {
    item();
    TraceArg arg;
    uint8_t tag = in_.below(15, "argument");
    arg.kind = tag == 14 ? ArgKind::kInt : static_cast<ArgKind>(tag);
    if (tag == 14) {
      uint64_t bits = in_.u64();
      if (bits <= static_cast<uint64_t>(INT64_MAX)) throw Tainted{"an unsigned number that is not large"};
      arg.number = static_cast<int64_t>(bits);
      return arg;
    }
    switch (arg.kind) {
      case ArgKind::kNone:
        break;
      case ArgKind::kTensor:
        arg.number = tensor(reads);
        break;
      case ArgKind::kInt:
        arg.number = in_.i64();
        break;
      case ArgKind::kFloat:
        arg.real = in_.f64();
        break;
      case ArgKind::kBool:
        arg.number = in_.yes_or_no();
        break;
      case ArgKind::kText:
        arg.text = in_.text("an argument", kMaxText);
        break;
      case ArgKind::kLayout:
        arg.text = word("layout", is_layout);
        break;
      case ArgKind::kMemoryFormat:
        arg.text = word("memory format", is_memory_format);
        break;
      case ArgKind::kTritonDtype:
        arg.text = word("Triton dtype", is_triton_dtype);
        break;
      case ArgKind::kList:
        if (depth >= kMaxArgDepth) throw Tainted{"an argument is nested too deeply"};
        for (size_t n = list("elements of a list"); n > 0; --n) arg.list.push_back(argument(reads, depth + 1));
        break;
      case ArgKind::kDtype:
        arg.number = static_cast<int64_t>(dtype());
        break;
      case ArgKind::kDevice:
        arg.number = in_.below(2, "device");
        break;
      case ArgKind::kFunction:
        arg.number = kernel_index();
        break;
      case ArgKind::kDescriptor:
        descriptor(&arg, reads);
        break;
    }
    return arg;
  }

  int64_t tensor(std::vector<int64_t>* reads) {
    if (!reads) throw Tainted{"a tensor where a constant belongs"};
    reads->push_back(value_id());
    return reads->back();
  }

  void descriptor(TraceArg* arg, std::vector<int64_t>* reads) {
    arg->number = tensor(reads);
    size_t rank = 0;
    for (int part = 0; part < 3; ++part) {
      size_t n = in_.count("dimensions of a descriptor", kMaxRank, 8);
      if (part > 0 && n != rank) throw Tainted{"shape and strides of a descriptor disagree"};
      rank = n;
      TraceArg sizes;
      sizes.kind = ArgKind::kList;
      for (size_t i = 0; i < n; ++i) sizes.list.push_back(number(in_.large("a descriptor's size", 0, kMaxElements)));
      arg->list.push_back(std::move(sizes));
    }
    arg->list.push_back(number(in_.below(2, "padding")));
  }

  TraceArg number(int64_t n) {
    item();
    TraceArg arg;
    arg.kind = ArgKind::kInt;
    arg.number = n;
    return arg;
  }

  NamedArgs named_arguments(std::vector<int64_t>* reads) {
    NamedArgs out;
    std::set<std::string> names;
    for (size_t n = list("arguments", 5); n > 0; --n) {
      std::string key = name("an argument's name");
      if (!names.insert(key).second) throw Tainted{"two arguments have one name"};
      out.emplace_back(std::move(key), argument(reads));
    }
    return out;
  }

  Nest<int64_t> structure(int depth = 0) {
    using Kind = Nest<int64_t>::Kind;
    item();
    if (depth > kMaxNestDepth) throw Tainted{"outputs are nested too deeply"};
    Nest<int64_t> out;
    out.kind = static_cast<Kind>(in_.below(5, "structure"));
    if (out.kind == Kind::kLeaf) {
      out.leaf = value_id();
    } else if (out.kind == Kind::kValue) {
      out.value = json("a value among outputs", kMaxText);
      if (out.value.is_structured()) throw Tainted{"a malformed value among outputs"};
    } else {
      for (size_t n = list("parts of a structure"); n > 0; --n) {
        if (out.kind == Kind::kDict) out.keys.push_back(name("a key"));
        out.children.push_back(structure(depth + 1));
      }
    }
    return out;
  }

  // --- Kernels, cubins and specs.

  TraceSpec spec() {
    item();
    TraceSpec out;
    out.json = json("a spec", kMaxJson);
    if (!out.json.is_object() || !out.json.contains("kernel") || !out.json.contains("key")) {
      throw Tainted{"a malformed spec"};
    }
    out.kernel = strict::integer(out.json["kernel"], "kernel", 0, static_cast<int64_t>(kernels_) - 1);
    out.key = strict::text(out.json["key"], "key", 128);
    return out;
  }

  TraceKernel kernel() {
    TraceKernel out;
    out.name = name("a kernel's name");
    out.source = in_.text("a kernel's source", kMaxSource);
    out.is_constexpr_function = in_.below(2, "decorator") == 1;
    out.line = line();
    for (size_t n = list("globals", 5); n > 0; --n) out.globals.push_back(global());
    return out;
  }

  TraceGlobal global() {
    item();
    TraceGlobal out;
    out.name = name("a global's name");
    out.kind = static_cast<TraceGlobal::Kind>(in_.below(6, "global"));
    switch (out.kind) {
      case TraceGlobal::Kind::kJit:
        out.kernel = kernel_index();
        break;
      case TraceGlobal::Kind::kConstexpr:
      case TraceGlobal::Kind::kValue:
        out.value = argument(nullptr);
        break;
      case TraceGlobal::Kind::kModule:
        out.path = name("a module's path");
        break;
      case TraceGlobal::Kind::kMember:
        out.path = name("a module's path");
        out.member = name("a member's name");
        break;
      case TraceGlobal::Kind::kOpaque:
        break;
    }
    return out;
  }

  TraceCubin cubin() {
    TraceCubin out;
    out.kernel = kernel_index();
    out.function = name("a function's name");
    for (size_t n = list("parameters of a kernel", 4); n > 0; --n) {
      item();
      out.signature.push_back(in_.text("a signature", kMaxText));
    }
    out.constants = named_arguments(nullptr);
    read_warps(&out.num_warps, &out.num_stages);
    out.num_ctas = in_.small("num_ctas", 1, 16);
    for (int64_t& size : out.cluster) size = in_.small("a cluster's size", 1, 16);
    out.shared = in_.small("shared memory", 0, INT32_MAX);
    out.global_scratch = in_.large("scratch memory", 0, kMaxElements);
    out.profile_scratch = in_.large("scratch memory", 0, kMaxElements);
    uint8_t flags = in_.below(4, "cubin");
    out.cooperative = flags & 1;
    out.dependent_launch = flags & 2;
    out.descriptors = json("descriptors", kMaxJson);
    out.image = in_.raw(in_.u64());
    if (out.image.substr(0, 4) != "\177ELF") throw Tainted{"a cubin that is none"};
    return out;
  }

  void read_warps(int64_t* num_warps, int64_t* num_stages) {
    *num_warps = in_.small("num_warps", 1, 64);
    *num_stages = in_.small("num_stages", 0, 64);
  }

  // --- Cases.

  CaseTrace trace() {
    CaseTrace out;
    trace_ = &out;
    out.name = name("a case's name");
    out.init_steps = in_.u32();
    out.input_steps = in_.u32();
    size_t values = in_.count("values", kMaxValues, 14);
    for (size_t i = 0; i < values; ++i) out.values.push_back(value(static_cast<int64_t>(values)));
    for (size_t n = list("inputs", 5); n > 0; --n) out.inputs.push_back(input());
    std::set<std::string> names;
    for (size_t n = in_.count("parameters", kMaxValues, 10); n > 0; --n) {
      out.parameters.push_back(parameter());
      if (!names.insert(out.parameters.back().name).second) throw Tainted{"two parameters have one name"};
    }
    for (size_t n = in_.count("steps", kMaxSteps, 18); n > 0; --n) out.tape.push_back(step());
    out.outputs = structure();
    for (const char* what : {"import", "init", "forward", "compile", "total"}) {
      double seconds = in_.f64();
      if (!std::isfinite(seconds) || seconds < 0) throw Tainted{"a time that is none"};
      out.seconds[what] = seconds;
    }
    out.notes = json("notes", kMaxJson);
    if (!out.notes.is_object()) throw Tainted{"malformed notes"};
    trace_ = nullptr;
    if (out.init_steps > out.tape.size() || out.input_steps > out.tape.size() - out.init_steps) {
      throw Tainted{"a section has more steps than the tape"};
    }
    check_flow(out);
    return out;
  }

  TraceValue value(int64_t values) {
    item();
    TraceValue out;
    out.dtype = dtype();
    out.storage = in_.small("a storage", 0, values - 1);
    out.offset = in_.large("an offset", 0, kMaxElements);
    size_t rank = in_.u8();
    if (rank > kMaxRank) throw Tainted{"a value has too many dimensions"};
    for (size_t i = 0; i < rank; ++i) out.shape.push_back(in_.large("a size", 0, kMaxElements));
    for (size_t i = 0; i < rank; ++i) out.stride.push_back(in_.large("a stride", 0, kMaxElements));
    strict::numel(out.shape, "a value");
    int64_t last = out.offset;
    for (size_t i = 0; i < rank; ++i) {
      if (out.shape[i] > 1 && out.stride[i] > kMaxElements / out.shape[i]) throw Tainted{"a value is too large"};
      last += std::max<int64_t>(out.shape[i] - 1, 0) * out.stride[i];
    }
    if (last > kMaxElements) throw Tainted{"a value is too large"};
    return out;
  }

  TraceInput input() {
    item();
    TraceInput out;
    if (in_.below(2, "input") == 0) {
      out.value = value_id();
    } else {
      out.literal = json("an input", kMaxJson);
    }
    return out;
  }

  TraceParameter parameter() {
    item();
    TraceParameter out;
    out.name = name("a parameter's name");
    out.value = value_id();
    out.is_buffer = in_.yes_or_no();
    out.has_bytes = in_.yes_or_no();
    if (!out.has_bytes) return out;
    uint64_t size = in_.u64();
    const TraceValue& own = trace_->values[static_cast<size_t>(out.value)];
    if (size != static_cast<uint64_t>(strict::numel(own.shape, "a parameter") * item_size(own.dtype))) {
      throw Tainted{"a parameter and its bytes disagree"};
    }
    out.initial = in_.raw(size);
    return out;
  }

  TraceStep step() {
    item();
    TraceStep out;
    out.is_launch = in_.below(2, "step") == 1;
    out.is_launch ? launch(&out) : call(&out);
    return out;
  }

  void call(TraceStep* out) {
    out->op = in_.text("an operator's name", kMaxOp);
    if (!is_operator(out->op)) throw Tainted{"a step that names no operator"};
    for (size_t n = list("arguments"); n > 0; --n) out->args.push_back(argument(&out->reads));
    out->kwargs = named_arguments(&out->reads);
    out->result = structure();
    visit_leaves(out->result, [&](int64_t id) { out->outs.push_back(id); });
  }

  void launch(TraceStep* out) {
    out->kernel = kernel_index();
    out->line = line();
    size_t choices = in_.count("choices of a launch", kMaxChoices, 26);
    if (choices == 0) throw Tainted{"a launch without a grid"};
    for (size_t i = 0; i < choices; ++i) out->choices.push_back(choice(*out));
  }

  TraceChoice choice(TraceStep& step) {
    item();
    TraceChoice out;
    for (size_t i = 0; i < 3; ++i) out.grid[i] = in_.small("a grid's size", 0, kMaxGrid[i]);
    read_warps(&out.num_warps, &out.num_stages);
    if (in_.yes_or_no()) {
      out.cubin = in_.u32();
      if (out.cubin >= static_cast<int64_t>(cubins_->size())) throw Tainted{"an index that names no cubin"};
      if ((*cubins_)[static_cast<size_t>(out.cubin)].kernel != step.kernel) {
        throw Tainted{"a launch with another kernel's cubin"};
      }
    }
    if (in_.yes_or_no()) {
      out.spec = in_.u32();
      if (out.spec >= static_cast<int64_t>(specs_->size())) throw Tainted{"an index that names no spec"};
      if ((*specs_)[static_cast<size_t>(out.spec)].kernel != step.kernel) {
        throw Tainted{"a launch with another kernel's spec"};
      }
    }
    out.args = named_arguments(&step.reads);
    if (!step.choices.empty()) {
      const NamedArgs& first = step.choices[0].args;
      bool same = std::equal(first.begin(), first.end(), out.args.begin(), out.args.end(),
                             [](const auto& a, const auto& b) { return a.first == b.first; });
      if (!same) throw Tainted{"choices of one launch take other arguments"};
    }
    return out;
  }

  ByteReader in_;
  size_t kernels_ = 0;  // Those that may be named: a kernel names only earlier ones, so that none needs itself.
  const std::vector<TraceCubin>* cubins_ = nullptr;
  const std::vector<TraceSpec>* specs_ = nullptr;
  const CaseTrace* trace_ = nullptr;  // The case being read; its values are known.
  size_t items_ = 0, json_bytes_ = 0;
};

}  // namespace

int64_t TraceValue::end_byte() const {
  int64_t last = offset;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) return offset * item_size(dtype);
    last += (shape[i] - 1) * stride[i];
  }
  return (last + 1) * item_size(dtype);
}

double CaseTrace::programs() const {
  double sum = 0;
  for (const TraceStep& step : tape) {
    if (!step.is_launch) continue;
    double product = 1;
    for (int64_t size : step.choices[0].grid) product *= static_cast<double>(size);
    sum += product;
  }
  return sum;
}

double CaseTrace::bytes() const {
  std::map<int64_t, int64_t> extents;
  for (const TraceValue& value : values) {
    int64_t& extent = extents[value.storage];
    extent = std::max(extent, value.end_byte());
  }
  double sum = 0;
  for (const auto& [storage, extent] : extents) sum += static_cast<double>(extent);
  return sum;
}

int64_t CaseTrace::launches() const {
  return std::count_if(tape.begin(), tape.end(), [](const TraceStep& step) { return step.is_launch; });
}

const CaseTrace* TraceFile::find(const std::string& name) const {
  auto it = std::find_if(cases.begin(), cases.end(), [&](const CaseTrace& trace) { return trace.name == name; });
  return it == cases.end() ? nullptr : &*it;
}

Parsed<TraceFile> parse_trace_file(std::shared_ptr<const std::string> bytes) {
  try {
    TraceFile file;
    file.bytes = std::move(bytes);
    TraceFileReader(*file.bytes).read(&file);
    return {std::move(file), ""};
  } catch (const Tainted& tainted) {
    return {std::nullopt, tainted.why};
  }
}

}  // namespace tritonrl
