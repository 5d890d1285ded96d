// SPDX-License-Identifier: Apache-2.0
#include "verify/trace/specialisation.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "verify/trace/target_gpu.h"

namespace tritonrl {
namespace {

using Kind = TraceArg::Kind;

const char* triton_name(Dtype dtype) {
  static constexpr const char* kNames[kDtypeCount] = {"fp32", "fp64", "fp16", "bf16", "i8",
                                                      "i16",  "i32",  "i64",  "u8",   "u1"};
  return kNames[static_cast<int>(dtype)];
}

// Bits of "i32", "u64", ...; 0 for what is no integer.
int integer_bits(const std::string& type) {
  if (type.size() < 2 || type.size() > 3 || (type[0] != 'i' && type[0] != 'u')) return 0;
  for (int bits : {1, 8, 16, 32, 64}) {
    if (type.compare(1, std::string::npos, cat(bits)) == 0) return bits;
  }
  return 0;
}

bool is_float(const std::string& type) { return type == "fp32" || type == "fp16" || type == "bf16" || type == "fp64"; }

// A large unsigned number is held as the int of the same bits.
bool holds(const std::string& type, int64_t number) {
  int bits = integer_bits(type);
  if (bits == 64) return true;
  if (bits == 0) return false;
  return type[0] == 'u' ? number >= 0 && number < int64_t{1} << bits
                        : number >= -(int64_t{1} << (bits - 1)) && number < int64_t{1} << (bits - 1);
}

bool same_real(const Json& said, double real) {
  if (said.is_string()) return said == (std::isnan(real) ? "nan" : real > 0 ? "inf" : "-inf") && !std::isfinite(real);
  return said.is_number() && said.get<double>() == real && std::signbit(said.get<double>()) == std::signbit(real);
}

// Is an ARG of the spec (worker/PROTOCOL.md) this argument of a launch?
bool same(const Json& said, const TraceArg& arg) {
  if (!said.is_object() || said.size() != 1) return false;
  const std::string& key = said.begin().key();
  const Json& body = said.begin().value();
  switch (arg.kind) {
    case Kind::kNone:
      return key == "n";
    case Kind::kInt:
      return key == "i" && body.is_number_integer() &&
             (body.is_number_unsigned() ? static_cast<int64_t>(body.get<uint64_t>()) : body.get<int64_t>()) ==
                 arg.number;
    case Kind::kBool:
      return key == "b" && body.is_boolean() && body.get<bool>() == (arg.number != 0);
    case Kind::kFloat:
      return key == "f" && same_real(body, arg.real);
    case Kind::kText:
      return key == "s" && body == arg.text;
    case Kind::kDtype:
      return key == "dtype" && body == to_string(static_cast<Dtype>(arg.number));
    case Kind::kTritonDtype:
      return key == "dtype" && body == cat("tl.", arg.text);
    case Kind::kFunction:
      return key == "s" && body == cat("jit:", arg.number);
    case Kind::kList:
      return key == "l" && body.is_array() && body.size() == arg.list.size() &&
             std::equal(body.begin(), body.end(), arg.list.begin(), same);
    default:
      return false;
  }
}

class Check {
 public:
  Check(const CaseTrace& trace, const TraceChoice& choice, const TraceSpec& spec, int64_t arch)
      : trace_(trace), choice_(choice), json_(spec.json), arch_(arch) {}

  void run() {
    const Json& signature = member("signature");
    if (signature.size() != choice_.args.size()) wrong("parameters");
    for (const auto& [name, arg] : choice_.args) {
      if (!signature.contains(name)) wrong("parameters");
      parameter(name, signature[name], arg);
    }
    if (constants_ != member("constants").size()) wrong("constants");
    if (divisible_ != member("attrs").size()) wrong("attributes");
    const Json& options = member("options");
    if (options.value("num_warps", Json()) != choice_.num_warps) wrong("num_warps");
    if (options.value("num_stages", Json()) != choice_.num_stages) wrong("num_stages");
    if (json_.value("arch", Json()) != arch_) throw Tainted{"a kernel for another architecture"};
  }

 private:
  [[noreturn]] static void wrong(const char* what) {
    throw Tainted{cat("a launch and what is compiled for it have other ", what)};
  }

  const Json& member(const char* name) const {
    if (!json_.contains(name) || !json_[name].is_object()) throw Tainted{"a malformed spec"};
    return json_[name];
  }

  void parameter(const std::string& path, const Json& type, const TraceArg& arg) {
    if (type.is_array()) {
      if (arg.kind != Kind::kList || type.size() != arg.list.size()) wrong("types");
      for (size_t i = 0; i < type.size(); ++i) parameter(cat(path, ".", i), type[i], arg.list[i]);
      return;
    }
    if (!type.is_string()) throw Tainted{"a malformed spec"};
    const Json& constants = member("constants");
    if (type == "constexpr") {
      if (!constants.contains(path) || !same(constants[path], arg)) wrong("constants");
      ++constants_;
      return;
    }
    if (!has_type(arg, type.get_ref<const std::string&>())) wrong("types");
    const Json& attributes = member("attrs");
    if (!attributes.contains(path)) return;
    static const Json kDivisible = Json::array({Json::array({"tt.divisibility", 16})});
    if (attributes[path] != kDivisible || address(arg) % 16 != 0) wrong("attributes");
    ++divisible_;
  }

  const TraceValue& value(const TraceArg& arg) const { return trace_.values[static_cast<size_t>(arg.number)]; }

  bool has_type(const TraceArg& arg, const std::string& type) const {
    switch (arg.kind) {
      case Kind::kNone:
        return type[0] == '*';
      case Kind::kTensor:  // Its address as a number is one of 64 bits.
        return type == cat("*", triton_name(value(arg).dtype)) || type == cat("*k", triton_name(value(arg).dtype)) ||
               integer_bits(type) == 64;
      case Kind::kInt:
      case Kind::kBool:
        return is_float(type) || holds(type, arg.number);
      case Kind::kFloat:
        return is_float(type);
      case Kind::kDescriptor:
        return is_descriptor(arg, type);
      default:
        return false;
    }
  }

  // "tensordesc<fp16[64, 64]>".
  bool is_descriptor(const TraceArg& arg, std::string type) const {
    std::string wanted = cat("tensordesc<", triton_name(value(arg).dtype), "[");
    const std::vector<TraceArg>& block = arg.list[2].list;
    for (size_t i = 0; i < block.size(); ++i) wanted += cat(i > 0 ? "," : "", block[i].number);
    type.erase(std::remove(type.begin(), type.end(), ' '), type.end());
    return type.rfind(wanted + "]", 0) == 0;
  }

  // Storages begin at multiples of far more than 16.
  uint64_t address(const TraceArg& arg) const {
    if (arg.kind != Kind::kTensor) return static_cast<uint64_t>(arg.number);
    return static_cast<uint64_t>(value(arg).offset * item_size(value(arg).dtype));
  }

  const CaseTrace& trace_;
  const TraceChoice& choice_;
  const Json& json_;
  int64_t arch_;
  size_t constants_ = 0, divisible_ = 0;  // Seen.
};

}  // namespace

void check_specialisations(const TraceFile& file, int64_t arch) {
  for (const CaseTrace& trace : file.cases) {
    for (const TraceStep& step : trace.tape) {
      for (const TraceChoice& choice : step.choices) {
        if (choice.spec >= 0) Check(trace, choice, file.specs[static_cast<size_t>(choice.spec)], arch).run();
      }
    }
  }
}

void check_compiled(const Json& spec, const TraceCubin& cubin) {
  const Json options = spec.value("options", Json::object());
  // Specialised warps come on top of those that were asked for.
  if (options.value("num_ctas", Json(1)) != cubin.num_ctas || options.value("num_warps", Json(0)) > cubin.num_warps) {
    throw Tainted{"a compiled kernel is launched otherwise than its spec says"};
  }
  if (int64_t arch = architecture_of(cubin.image); arch > 0 && spec.value("arch", Json()) != arch) {
    throw Tainted{"a kernel compiled for another architecture"};
  }
}

}  // namespace tritonrl
