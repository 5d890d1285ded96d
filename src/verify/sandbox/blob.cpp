// SPDX-License-Identifier: Apache-2.0
#include "verify/sandbox/blob.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "verify/verdict.h"

namespace tritonrl {
namespace {

struct DtypeInfo {
  const char* name;
  int64_t size;
};
constexpr std::array<DtypeInfo, kDtypeCount> kDtypes = {{{"float32", 4},
                                                         {"float64", 8},
                                                         {"float16", 2},
                                                         {"bfloat16", 2},
                                                         {"int8", 1},
                                                         {"int16", 2},
                                                         {"int32", 4},
                                                         {"int64", 8},
                                                         {"uint8", 1},
                                                         {"bool", 1}}};
constexpr int64_t kMaxElements = int64_t{1} << 40;
constexpr int kMaxJsonDepth = 64;

// Deep nesting would cost us stack where the JSON is printed again.
bool too_deep(std::string_view json) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < json.size(); ++i) {
    char c = json[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxJsonDepth) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

bool one_of(const std::string& word, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* known) { return word == known; });
}

// What a child may say of itself. It cannot say how its outputs compare, for it does not know; nor that we failed.
bool is_childs(Rule rule) {
  switch (outcome_of(rule)) {
    case Outcome::kCompileError:
    case Outcome::kRuntimeError:
    case Outcome::kUnsupported:
    case Outcome::kOutOfMemory:
    case Outcome::kRuleBreak:
      return true;
    default:
      return rule == Rule::kRace;
  }
}

Finding read_failure(const Json& json) {
  strict::object(json, "failure", {"rule", "phase", "message"}, {"kernel", "line"});
  auto rule = named<Rule>(strict::text(json["rule"], "rule", 64));
  std::string phase = strict::text(json["phase"], "phase", 64);
  if (!rule || !is_childs(*rule) || !one_of(phase, {"import", "init", "forward", "compile", "launch"})) {
    throw Tainted{"an unknown kind of failure"};
  }
  Finding failure(*rule, strict::text(json["message"], "message", 1 << 20));
  failure.told.phase = phase;
  if (json.contains("kernel")) failure.told.kernel = strict::text(json["kernel"], "kernel", 256);
  if (json.contains("line")) failure.told.line = strict::integer(json["line"], "line", 0, INT32_MAX);
  return failure;
}

}  // namespace

const char* to_string(Dtype dtype) { return kDtypes[static_cast<size_t>(dtype)].name; }
int64_t item_size(Dtype dtype) { return kDtypes[static_cast<size_t>(dtype)].size; }

std::optional<Dtype> dtype_from_string(std::string_view name) {
  for (size_t i = 0; i < kDtypes.size(); ++i) {
    if (name == kDtypes[i].name) return static_cast<Dtype>(i);
  }
  return std::nullopt;
}

int64_t BlobView::numel() const {
  int64_t n = 1;
  for (int64_t size : shape) n *= size;
  return n;
}

std::vector<int64_t> index_of(int64_t flat, const std::vector<int64_t>& shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t i = shape.size(); i-- > 0; flat /= std::max<int64_t>(shape[i], 1)) index[i] = flat % shape[i];
  return index;
}

std::string dims_text(const std::vector<int64_t>& shape) {
  std::vector<std::string> parts;
  for (int64_t size : shape) parts.push_back(std::to_string(size));
  return cat("(", join(parts, ", "), parts.size() == 1 ? ",)" : ")");
}

namespace strict {

Json json(std::string_view text, const char* where) {
  if (too_deep(text)) throw Tainted{cat(where, " is nested too deeply")};
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) throw Tainted{cat(where, " is not JSON")};
  return json;
}

const Json& object(const Json& json, const char* where, std::initializer_list<const char*> required,
                   std::initializer_list<const char*> optional) {
  if (!json.is_object()) throw Tainted{cat(where, " is not an object")};
  for (const char* key : required) {
    if (!json.contains(key)) throw Tainted{cat(where, " lacks ", key)};
  }
  for (const auto& [key, value] : json.items()) {
    if (!one_of(key, required) && !one_of(key, optional)) throw Tainted{cat(where, " has an unknown member")};
  }
  return json;
}

const Json& array(const Json& json, const char* where, size_t max_size) {
  if (!json.is_array()) throw Tainted{cat(where, " is not a list")};
  if (json.size() > max_size) throw Tainted{cat(where, " has more than ", max_size, " items")};
  return json;
}

int64_t integer(const Json& json, const char* where, int64_t low, int64_t high) {
  if (!json.is_number_integer()) throw Tainted{cat(where, " is not an integer")};
  bool too_large = json.is_number_unsigned() && json.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
  int64_t value = too_large ? 0 : json.get<int64_t>();
  if (too_large || value < low || value > high) throw Tainted{cat(where, " is out of range")};
  return value;
}

std::string text(const Json& json, const char* where, size_t max_bytes) {
  if (!json.is_string()) throw Tainted{cat(where, " is not a text")};
  const auto& value = json.get_ref<const std::string&>();
  if (value.size() > max_bytes) throw Tainted{cat(where, " is longer than ", max_bytes, " bytes")};
  return value;
}

std::vector<int64_t> sizes(const Json& json, const char* where, int64_t low, int64_t high, size_t max_dims) {
  std::vector<int64_t> out;
  for (const Json& item : array(json, where, max_dims)) out.push_back(integer(item, where, low, high));
  return out;
}

Dtype dtype(const Json& json, const char* where) {
  auto value = dtype_from_string(text(json, where, 32));
  if (!value) throw Tainted{cat(where, " names an unknown dtype")};
  return *value;
}

int64_t numel(const std::vector<int64_t>& shape, const char* where) {
  int64_t n = 1;
  for (int64_t size : shape) {
    if (size > 0 && n > kMaxElements / size) throw Tainted{cat(where, " has too many elements")};
    n *= size;
  }
  return n;
}

}  // namespace strict

std::map<std::string, Finding> case_failures(const Json& header) {
  std::map<std::string, Finding> out;
  if (!header.contains("failures")) return out;
  for (const Json& item : strict::array(header["failures"], "failures", 64)) {
    strict::object(item, "failure of a case", {"case", "failure"});
    out[strict::text(item["case"], "case", 64)] = read_failure(item["failure"]);
  }
  return out;
}

Parsed<Blob> parse_blob(std::string bytes, const std::string& nonce) {
  try {
    uint32_t length = 0;
    if (bytes.size() < sizeof length) throw Tainted{"the result is shorter than its frame"};
    std::memcpy(&length, bytes.data(), sizeof length);
    if (length > kMaxHeaderBytes || length > bytes.size() - sizeof length) throw Tainted{"the result is cut short"};
    Blob blob;
    blob.header = strict::json(std::string_view(bytes).substr(sizeof length, length), "the result");
    if (!blob.header.is_object()) throw Tainted{"the result is not a JSON object"};
    auto own = blob.header.find("nonce");
    if (own == blob.header.end() || !own->is_string() || own->get<std::string>() != nonce) {
      throw Tainted{"the result does not carry its job's mark"};
    }
    auto ok = blob.header.find("ok");
    if (ok == blob.header.end() || !ok->is_boolean()) throw Tainted{"the result does not say whether it is one"};
    if (!ok->get<bool>()) {
      if (!blob.header.contains("failure")) throw Tainted{"a failure without a reason"};
      blob.failure = read_failure(blob.header["failure"]);
    }
    blob.tensors_at = sizeof length + length;
    blob.bytes = std::move(bytes);
    return {std::move(blob), ""};
  } catch (const Tainted& tainted) {
    return {std::nullopt, tainted.why};
  }
}

BlobView tensor_from(const Json& ref, std::string_view area) {
  strict::object(ref, "tensor", {"shape", "dtype", "offset", "nbytes"}, {"stride"});
  BlobView tensor;
  tensor.shape = strict::sizes(ref["shape"], "shape", 0, kMaxElements);
  tensor.dtype = strict::dtype(ref["dtype"], "dtype");
  if (ref.contains("stride") && strict::sizes(ref["stride"], "stride", 0, kMaxElements).size() != tensor.shape.size()) {
    throw Tainted{"stride and shape of a tensor disagree"};
  }
  int64_t nbytes = strict::integer(ref["nbytes"], "nbytes", 0, INT64_MAX);
  int64_t offset = strict::integer(ref["offset"], "offset", 0, INT64_MAX);
  if (nbytes != strict::numel(tensor.shape, "tensor") * item_size(tensor.dtype)) {
    throw Tainted{"shape and size of a tensor disagree"};
  }
  auto size = static_cast<int64_t>(area.size());
  if (offset > size || nbytes > size - offset) throw Tainted{"a tensor lies outside of the result"};
  tensor.bytes = area.substr(static_cast<size_t>(offset), static_cast<size_t>(nbytes));
  return tensor;
}

Nest<BlobView> tensors_from(const Json& structure, std::string_view area) {
  return strict::nest<BlobView>(structure, "shape", [&](const Json& ref) { return tensor_from(ref, area); });
}

Json PayloadWriter::add(const BlobView& tensor) {
  payload_.resize((payload_.size() + 15) / 16 * 16);  // Aligned, so that the child may read it in place.
  Json ref = {{"shape", tensor.shape},
              {"dtype", to_string(tensor.dtype)},
              {"offset", payload_.size()},
              {"nbytes", tensor.bytes.size()}};
  payload_ += tensor.bytes;
  return ref;
}

}  // namespace tritonrl
