// SPDX-License-Identifier: Apache-2.0
// GGUF header parsing with a bounds-checked cursor.
#include "model/gguf.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/text.h"
#include "model/dtype.h"

namespace tritonrl {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDamaged = "the file is damaged or an unfinished download; fetch it again";
constexpr uint32_t kVersion = 3;
constexpr uint64_t kMaxDims = 4;

enum ValueType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kFloat64 = 12,
};

class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, const fs::path& path) : bytes_(bytes), path_(path) {}

  template <class T>
  T take() {
    need(sizeof(T));
    T value = load_le<T>(bytes_.data() + at_);
    at_ += sizeof(T);
    return value;
  }
  std::string text() {
    auto length = take<uint64_t>();
    need(length);
    std::string result(reinterpret_cast<const char*>(bytes_.data()) + at_, length);
    at_ += length;
    return result;
  }
  // A count of things that each take at least min_bytes: refused before anything is reserved for it.
  uint64_t count(uint64_t min_bytes) {
    auto n = take<uint64_t>();
    if (n > (bytes_.size() - at_) / min_bytes) throw truncated();
    return n;
  }
  uint64_t position() const { return at_; }
  Error error(const std::string& what) const { return usage_error(what, path_.string(), kDamaged); }

 private:
  void need(uint64_t n) const {
    if (n > bytes_.size() - at_) throw truncated();
  }
  Error truncated() const { return error(cat("the GGUF header breaks off at byte ", at_, " of ", bytes_.size())); }

  std::span<const std::byte> bytes_;
  const fs::path& path_;
  uint64_t at_ = 0;
};

bool take_bool(Cursor& in) {
  auto byte = in.take<uint8_t>();
  if (byte > 1) throw in.error(cat("a bool of value ", int{byte}, " before byte ", in.position()));
  return byte == 1;
}

GgufValue take_scalar(Cursor& in, uint32_t type) {
  switch (type) {
    case kU8:
      return uint64_t{in.take<uint8_t>()};
    case kI8:
      return int64_t{in.take<int8_t>()};
    case kU16:
      return uint64_t{in.take<uint16_t>()};
    case kI16:
      return int64_t{in.take<int16_t>()};
    case kU32:
      return uint64_t{in.take<uint32_t>()};
    case kI32:
      return int64_t{in.take<int32_t>()};
    case kU64:
      return in.take<uint64_t>();
    case kI64:
      return in.take<int64_t>();
    case kFloat32:
      return double{in.take<float>()};
    case kFloat64:
      return in.take<double>();
    case kBool:
      return take_bool(in);
    case kString:
      return in.text();
    default:
      throw in.error(cat("unknown value type ", type, " before byte ", in.position()));
  }
}

int64_t as_integer(const GgufValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  if (const auto* wide = std::get_if<uint64_t>(&value)) return static_cast<int64_t>(*wide);
  return std::get<int64_t>(value);
}

GgufValue take_value(Cursor& in, uint32_t type) {
  if (type != kArray) return take_scalar(in, type);
  auto element = in.take<uint32_t>();
  if (element > kFloat64 || element == kArray) throw in.error(cat("an array of value type ", element));
  if (element == kString) {
    std::vector<std::string> result(in.count(8));
    for (std::string& text : result) text = in.text();
    return result;
  }
  uint64_t n = in.count(1);
  if (element == kFloat32 || element == kFloat64) {
    std::vector<double> result;
    for (uint64_t i = 0; i < n; ++i) result.push_back(std::get<double>(take_scalar(in, element)));
    return result;
  }
  std::vector<int64_t> result;
  for (uint64_t i = 0; i < n; ++i) result.push_back(as_integer(take_scalar(in, element)));
  return result;
}

struct Placed {
  GgufTensor tensor;
  uint64_t offset = 0;  // From the start of the data section.
};

Placed take_tensor(Cursor& in, const fs::path& path) {
  Placed placed;
  GgufTensor& tensor = placed.tensor;
  tensor.name = in.text();
  auto dims = in.take<uint32_t>();
  if (dims == 0 || dims > kMaxDims) throw in.error(cat("tensor \"", tensor.name, "\" has ", dims, " dimensions"));
  uint64_t elements = 1;
  for (uint32_t d = 0; d < dims; ++d) {
    auto size = in.take<uint64_t>();
    if (size == 0 || size > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) / 8 / elements) {
      throw in.error(cat("tensor \"", tensor.name, "\" has an impossible size ", size));
    }
    elements *= size;
    tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(size));
  }
  auto type = in.take<uint32_t>();
  const GgufTypeInfo* info = gguf_type_info(type);
  if (info == nullptr) {
    throw usage_error(cat("tensor \"", tensor.name, "\" is stored as GGML type ", type, ", which we do not read"),
                      path.string(), "use a file in F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K or Q6_K");
  }
  if (static_cast<uint64_t>(tensor.shape.back()) % info->block_elements != 0) {
    throw in.error(cat("tensor \"", tensor.name, "\": its rows are no multiple of ", info->block_elements));
  }
  tensor.type = info->type;
  tensor.elements = elements;
  tensor.bytes = elements / info->block_elements * info->block_bytes;
  placed.offset = in.take<uint64_t>();
  return placed;
}

Error wrong_type(const fs::path& path, std::string_view key) {
  return usage_error(cat("key \"", key, "\" has a value of an unexpected type"), path.string(), kDamaged);
}

template <class T>
const T& typed(const GgufValue& value, const fs::path& path, std::string_view key) {
  const T* result = std::get_if<T>(&value);
  if (result == nullptr) throw wrong_type(path, key);
  return *result;
}

}  // namespace

GgufFile GgufFile::open(const fs::path& path) {
  GgufFile result(MappedFile::open(path), path);
  std::span<const std::byte> bytes = result.file_.bytes();
  if (bytes.size() < 4 || std::memcmp(bytes.data(), "GGUF", 4) != 0) {
    throw usage_error("not a GGUF file", path.string(), "its first four bytes should be \"GGUF\"");
  }
  Cursor in(bytes.subspan(4), path);
  auto version = in.take<uint32_t>();
  if (version != kVersion) {
    throw usage_error(cat("GGUF version ", version, ", we read version ", kVersion), path.string(),
                      "convert the model again with a current llama.cpp (little-endian)");
  }
  uint64_t tensor_count = in.count(1), value_count = in.count(1);
  for (uint64_t i = 0; i < value_count; ++i) {
    std::string key = in.text();
    auto type = in.take<uint32_t>();
    GgufValue value = take_value(in, type);
    if (!result.values_.emplace(key, std::move(value)).second) throw in.error(cat("key \"", key, "\" comes twice"));
  }
  int64_t alignment = result.has("general.alignment") ? result.integer("general.alignment") : 32;
  if (alignment < 8 || alignment > 1 << 20 || (alignment & (alignment - 1)) != 0) {
    throw in.error(cat("general.alignment is ", alignment));
  }
  std::vector<Placed> placed;
  for (uint64_t i = 0; i < tensor_count; ++i) placed.push_back(take_tensor(in, path));
  uint64_t step = static_cast<uint64_t>(alignment), header = 4 + in.position();
  uint64_t start = (header + step - 1) / step * step;
  uint64_t room = start <= bytes.size() ? bytes.size() - start : 0, at = 0;
  std::sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) { return a.offset < b.offset; });
  for (Placed& p : placed) {
    if (p.offset % step != 0) throw in.error(cat("tensor \"", p.tensor.name, "\" is not aligned to ", step));
    if (p.offset < at) throw in.error(cat("tensor \"", p.tensor.name, "\" overlaps the one before it"));
    if (p.offset > room || p.tensor.bytes > room - p.offset) {
      throw in.error(cat("tensor \"", p.tensor.name, "\" ends beyond the end of the file"));
    }
    at = p.offset + p.tensor.bytes;
    p.tensor.data = bytes.data() + start + p.offset;
    std::string name = p.tensor.name;
    if (!result.tensors_.emplace(name, std::move(p.tensor)).second)
      throw in.error(cat("tensor \"", name, "\" comes twice"));
  }
  return result;
}

const GgufTensor* GgufFile::find(std::string_view name) const {
  auto it = tensors_.find(name);
  return it == tensors_.end() ? nullptr : &it->second;
}

const GgufValue& GgufFile::value(std::string_view key) const {
  auto it = values_.find(key);
  if (it == values_.end()) {
    throw usage_error(cat("key \"", key, "\" is missing"), path_.string(),
                      "is this a language model with a tokenizer?");
  }
  return it->second;
}

int64_t GgufFile::integer(std::string_view key) const {
  const GgufValue& v = value(key);
  if (const auto* wide = std::get_if<uint64_t>(&v)) {
    if (*wide > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) throw wrong_type(path_, key);
    return static_cast<int64_t>(*wide);
  }
  return typed<int64_t>(v, path_, key);
}

double GgufFile::number(std::string_view key) const { return typed<double>(value(key), path_, key); }
bool GgufFile::boolean(std::string_view key) const { return typed<bool>(value(key), path_, key); }
const std::string& GgufFile::text(std::string_view key) const { return typed<std::string>(value(key), path_, key); }
const std::vector<std::string>& GgufFile::texts(std::string_view key) const {
  return typed<std::vector<std::string>>(value(key), path_, key);
}
const std::vector<int64_t>& GgufFile::integers(std::string_view key) const {
  return typed<std::vector<int64_t>>(value(key), path_, key);
}

}  // namespace tritonrl
