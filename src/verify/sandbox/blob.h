// SPDX-License-Identifier: Apache-2.0
// Blob: what a sandboxed child sends back, "u32 header length | JSON header | tensors' bytes", parsed as the hostile
// bytes it may be. Also the small vocabulary for tensors that traces, blobs and the judge share.
//
// Parsing never throws and never CHECKs for anything the bytes hold: everything that does not fit is a Tainted reason,
// and the candidate's outcome is `tampered`.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files/json.h"
#include "base/text.h"
#include "verify/finding.h"

namespace tritonrl {

enum class Dtype { kFloat32, kFloat64, kFloat16, kBfloat16, kInt8, kInt16, kInt32, kInt64, kUint8, kBool };
constexpr int kDtypeCount = 10;
const char* to_string(Dtype dtype);  // torch's name: "float32".
std::optional<Dtype> dtype_from_string(std::string_view name);
int64_t item_size(Dtype dtype);
inline bool is_floating(Dtype dtype) { return dtype <= Dtype::kBfloat16; }

// A contiguous row-major tensor whose bytes belong to somebody else (a Blob).
struct BlobView {
  Dtype dtype = Dtype::kFloat32;
  std::vector<int64_t> shape;
  std::string_view bytes;  // numel() * item_size(dtype) of them.

  int64_t numel() const;
};
std::string dims_text(const std::vector<int64_t>& shape);  // "(2, 3)".
// Where element number `flat` in row-major order stands.
std::vector<int64_t> index_of(int64_t flat, const std::vector<int64_t>& shape);

// A nest of lists, tuples, dicts and scalars with T at its leaves: what forward() returned.
template <class T>
struct Nest {
  enum class Kind { kLeaf, kValue, kList, kTuple, kDict };
  Kind kind = Kind::kValue;
  T leaf{};
  Json value;                     // kValue: null, bool, number or string.
  std::vector<std::string> keys;  // kDict.
  std::vector<Nest> children;     // kList, kTuple, kDict.
};

// What tells one node of two structures from the other, leaves and children left aside; kPass = nothing.
template <class T, class U>
Finding other_node(const Nest<T>& got, const Nest<U>& expected, const std::string& name) {
  if (static_cast<int>(got.kind) != static_cast<int>(expected.kind)) {
    return other_form(Rule::kKind, name, Form(static_cast<Form::Kind>(got.kind)),
                      Form(static_cast<Form::Kind>(expected.kind)));
  }
  if (got.kind == Nest<T>::Kind::kValue && got.value != expected.value) {
    return other_scalar(name, got.value, expected.value);
  }
  size_t has = got.children.size(), should = expected.children.size();
  if (has == should && got.keys == expected.keys) return {};
  return other_form(Rule::kItems, name, Form::items(has, has == should), Form::items(should));
}

// Calls fn(leaf, path) for each leaf in order; path like "[1]" or "['a']".
template <class T, class Fn>
void for_each_leaf(const Nest<T>& nest, const Fn& fn, const std::string& path = "") {
  if (nest.kind == Nest<T>::Kind::kLeaf) fn(nest.leaf, path);
  for (size_t i = 0; i < nest.children.size(); ++i) {
    bool dict = nest.kind == Nest<T>::Kind::kDict;
    for_each_leaf(nest.children[i], fn, dict ? cat(path, "['", nest.keys[i], "']") : cat(path, "[", i, "]"));
  }
}

// The same without paths.
template <class T, class Fn>
void visit_leaves(const Nest<T>& nest, const Fn& fn) {
  if (nest.kind == Nest<T>::Kind::kLeaf) fn(nest.leaf);
  for (const Nest<T>& child : nest.children) visit_leaves(child, fn);
}

// Thrown inside parsers only and caught by their entry points.
struct Tainted {
  std::string why;
};
// Either a value or why the bytes cannot be honest.
template <class T>
struct Parsed {
  std::optional<T> value;
  std::string why;
  explicit operator bool() const { return value.has_value(); }
};

// Strict access to tainted JSON; all throw Tainted. `where` names the thing in messages.
namespace strict {
// Parses a text that is nested at most 64 deep.
Json json(std::string_view text, const char* where);
// An object with exactly the keys `required` plus any of `optional`.
const Json& object(const Json& json, const char* where, std::initializer_list<const char*> required,
                   std::initializer_list<const char*> optional = {});
const Json& array(const Json& json, const char* where, size_t max_size);
int64_t integer(const Json& json, const char* where, int64_t low, int64_t high);
std::string text(const Json& json, const char* where, size_t max_bytes);
std::vector<int64_t> sizes(const Json& json, const char* where, int64_t low, int64_t high, size_t max_dims = 16);
Dtype dtype(const Json& json, const char* where);
// Product of sizes; Tainted beyond 2^40.
int64_t numel(const std::vector<int64_t>& shape, const char* where);

// Reads a Nest whose leaves `read_leaf(json)` understands; a leaf is an object that has the key `leaf_key`.
template <class T, class ReadLeaf>
Nest<T> nest(const Json& json, const char* leaf_key, const ReadLeaf& read_leaf, int depth = 0) {
  if (depth > 8 || !json.is_object()) throw Tainted{"a malformed structure of outputs"};
  Nest<T> out;
  if (json.contains(leaf_key)) {
    out.kind = Nest<T>::Kind::kLeaf;
    out.leaf = read_leaf(json);
    return out;
  }
  if (json.size() != 1) throw Tainted{"a malformed structure of outputs"};
  const std::string& key = json.begin().key();
  const Json& body = json.begin().value();
  if (key == "value") {
    if (body.is_structured()) throw Tainted{"a malformed value among outputs"};
    out.value = body;
    return out;
  }
  if (key != "list" && key != "tuple" && key != "dict") throw Tainted{"a malformed structure of outputs"};
  out.kind = key == "list" ? Nest<T>::Kind::kList : key == "tuple" ? Nest<T>::Kind::kTuple : Nest<T>::Kind::kDict;
  for (const Json& item : array(body, "outputs", 1024)) {
    const Json* child = &item;
    if (key == "dict") {
      if (array(item, "outputs", 2).size() != 2) throw Tainted{"a malformed dict among outputs"};
      out.keys.push_back(text(item[0], "key", 256));
      child = &item[1];
    }
    out.children.push_back(nest<T>(*child, leaf_key, read_leaf, depth + 1));
  }
  return out;
}
}  // namespace strict

struct Blob {
  Json header;
  std::string bytes;               // The whole blob; `tensors` points into it.
  size_t tensors_at = 0;           // Where the tensor area begins.
  std::optional<Finding> failure;  // Set when the child says that the candidate failed.

  std::string_view tensors() const { return std::string_view(bytes).substr(tensors_at); }
};

// How a `record` job's cases failed that were allowed to: "failures" of its header, by case. Throws Tainted.
std::map<std::string, Finding> case_failures(const Json& header);

constexpr size_t kMaxHeaderBytes = 32 << 20;

// Checks framing, JSON (nesting at most 64 deep), nonce and the failure vocabulary.
Parsed<Blob> parse_blob(std::string bytes, const std::string& nonce);

// A tensor reference of the protocol, resolved in `area`. Throws Tainted when it does not fit. A "stride" is allowed
// (outputs say how they lay in memory) and checked for its form only.
BlobView tensor_from(const Json& ref, std::string_view area);
Nest<BlobView> tensors_from(const Json& structure, std::string_view area);

// Appends bytes and tensors to a payload, and makes references into it.
class PayloadWriter {
 public:
  Json add(const BlobView& tensor);
  std::string take() { return std::move(payload_); }

 private:
  std::string payload_;
};

}  // namespace tritonrl
