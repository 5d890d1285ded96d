// SPDX-License-Identifier: Apache-2.0
// Strict parsing of safetensors headers, shard indexes, and the writer.
#include "model/files/safetensors.h"

#include <algorithm>
#include <limits>
#include <set>

#include "base/check.h"
#include "base/error.h"
#include "base/files/json.h"
#include "base/text.h"

namespace tritonrl {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLengthBytes = 8;
constexpr uint64_t kMaxHeader = 100'000'000;  // The reference reader's limit.
constexpr const char* kDamaged = "the file is damaged or an unfinished download; fetch or write it again";

Error bad_file(const fs::path& path, const std::string& what) { return usage_error(what, path.string(), kDamaged); }

Error bad_tensor(const fs::path& path, const std::string& name, const std::string& what) {
  return usage_error(cat("tensor \"", name, "\": ", what), path.string(), kDamaged);
}

// Element count x element size; false on overflow or a negative size.
bool tensor_bytes(const std::vector<int64_t>& shape, DType dtype, size_t& bytes) {
  uint64_t total = dtype_bytes(dtype);
  for (int64_t size : shape) {
    if (size < 0) return false;
    if (size > 0 && total > std::numeric_limits<uint64_t>::max() / static_cast<uint64_t>(size)) return false;
    total *= static_cast<uint64_t>(size);
  }
  bytes = total;
  return true;
}

bool is_size(const Json& value) { return value.is_number_unsigned(); }

TensorView parse_tensor(const fs::path& path, const std::string& name, const Json& entry,
                        std::span<const std::byte> data) {
  if (!entry.is_object()) throw bad_tensor(path, name, "its header entry is not an object");
  auto dtype = entry.find("dtype"), shape = entry.find("shape"), offsets = entry.find("data_offsets");
  if (dtype == entry.end() || shape == entry.end() || offsets == entry.end() || entry.size() != 3) {
    throw bad_tensor(path, name, "its header entry needs exactly dtype, shape and data_offsets");
  }
  TensorView view;
  view.name = name;
  auto known = dtype->is_string() ? dtype_of(dtype->get_ref<const std::string&>()) : std::nullopt;
  if (!known) {
    std::vector<std::string> names;
    for (const DTypeInfo& info : kDTypes) names.emplace_back(info.name);
    throw usage_error(cat("tensor \"", name, "\": unknown dtype ", dtype->dump()), path.string(),
                      cat("known: ", join(names, ", ")));
  }
  view.dtype = *known;
  if (!shape->is_array() || !std::all_of(shape->begin(), shape->end(), is_size)) {
    throw bad_tensor(path, name, "its shape is not a list of sizes");
  }
  for (const Json& size : *shape) {
    auto value = size.get<uint64_t>();
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      throw bad_tensor(path, name, "its shape has a size beyond 2^63");
    }
    view.shape.push_back(static_cast<int64_t>(value));
  }
  if (!offsets->is_array() || offsets->size() != 2 || !is_size((*offsets)[0]) || !is_size((*offsets)[1])) {
    throw bad_tensor(path, name, "its data_offsets are not [begin, end]");
  }
  uint64_t begin = (*offsets)[0].get<uint64_t>(), end = (*offsets)[1].get<uint64_t>();
  if (begin > end || end > data.size()) {
    throw bad_tensor(path, name,
                     cat("its bytes [", begin, ", ", end, ") lie outside the ", data.size(), " bytes of data"));
  }
  if (!tensor_bytes(view.shape, view.dtype, view.bytes) || view.bytes != end - begin) {
    throw bad_tensor(
        path, name, cat(dtype_name(view.dtype), " ", shape_text(view.shape), " does not take ", end - begin, " bytes"));
  }
  view.data = data.data() + begin;
  return view;
}

// Tensors must lie one after the other without holes, so that no byte is shared and none is hidden.
void check_cover(const fs::path& path, const std::map<std::string, TensorView, std::less<>>& tensors,
                 std::span<const std::byte> data) {
  std::vector<const TensorView*> order;
  for (const auto& [name, view] : tensors) order.push_back(&view);
  std::sort(order.begin(), order.end(), [](const TensorView* a, const TensorView* b) {
    return a->data != b->data ? a->data < b->data : a->bytes < b->bytes;
  });
  size_t at = 0;
  for (const TensorView* view : order) {
    size_t begin = static_cast<size_t>(view->data - data.data());
    if (begin < at) throw bad_tensor(path, view->name, cat("its bytes overlap another tensor's at offset ", begin));
    if (begin > at) throw bad_tensor(path, view->name, cat("there is a hole of ", begin - at, " bytes before it"));
    at = begin + view->bytes;
  }
  if (at != data.size())
    throw bad_file(path, cat(data.size() - at, " bytes after the last tensor belong to no tensor"));
}

}  // namespace

std::string shape_text(const std::vector<int64_t>& shape) {
  std::vector<std::string> sizes;
  for (int64_t size : shape) sizes.push_back(cat(size));
  return cat("[", join(sizes, ", "), "]");
}

SafetensorsFile SafetensorsFile::open(const fs::path& path) {
  SafetensorsFile result(MappedFile::open(path), path);
  std::span<const std::byte> bytes = result.file_.bytes();
  if (bytes.size() < kLengthBytes) throw bad_file(path, cat("a safetensors file of only ", bytes.size(), " bytes"));
  uint64_t length = load_le<uint64_t>(bytes.data());
  if (length > kMaxHeader || length > bytes.size() - kLengthBytes) {
    throw bad_file(path, cat("the header should take ", length, " bytes, the file has ", bytes.size() - kLengthBytes));
  }
  std::span<const std::byte> data = bytes.subspan(kLengthBytes + length);
  const char* text = reinterpret_cast<const char*>(bytes.data()) + kLengthBytes;
  Json header = Json::parse(text, text + length, nullptr, /*allow_exceptions=*/false);
  if (!header.is_object()) throw bad_file(path, "the header is not a JSON object");
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      if (!entry.is_object()) throw bad_file(path, "__metadata__ is not an object");
      for (const auto& [key, value] : entry.items()) {
        if (!value.is_string()) throw bad_file(path, cat("__metadata__ has a value that is no text: ", key));
        result.metadata_[key] = value.get<std::string>();
      }
    } else {
      result.tensors_.emplace(name, parse_tensor(path, name, entry, data));
    }
  }
  check_cover(path, result.tensors_, data);
  return result;
}

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> names;
  for (const auto& [name, view] : tensors_) names.push_back(name);
  return names;
}

const TensorView* SafetensorsFile::find(std::string_view name) const {
  auto it = tensors_.find(name);
  return it == tensors_.end() ? nullptr : &it->second;
}

ModelFiles ModelFiles::open(const fs::path& folder) {
  ModelFiles result(folder);
  fs::path index_path = folder / "model.safetensors.index.json", single = folder / "model.safetensors";
  std::map<std::string, std::string> weight_map;  // Tensor -> shard; empty for a single file.
  std::set<std::string> shard_names;
  if (fs::exists(index_path)) {
    Json index = read_json(index_path);
    auto it = index.is_object() ? index.find("weight_map") : index.end();
    if (!index.is_object() || it == index.end() || !it->is_object() || it->empty()) {
      throw usage_error("the index has no weight_map", index_path.string(), kDamaged);
    }
    for (const auto& [name, shard] : it->items()) {
      // A shard lies beside its index: no separators, so an index cannot point out of the folder.
      if (!shard.is_string() || fs::path(shard.get<std::string>()).filename() != shard.get<std::string>()) {
        throw usage_error(cat("tensor \"", name, "\": its shard is not a file name: ", shard.dump()),
                          index_path.string(), kDamaged);
      }
      shard_names.insert(weight_map[name] = shard.get<std::string>());
    }
  } else if (fs::exists(single)) {
    shard_names.insert("model.safetensors");
  } else {
    throw usage_error("no model.safetensors and no model.safetensors.index.json in the folder", folder.string(),
                      "give a Hugging Face model folder, or make one from a GGUF file with: tritonrl model import");
  }
  result.shards_.reserve(shard_names.size());
  for (const std::string& name : shard_names) {
    if (!fs::exists(folder / name)) {
      throw usage_error(cat("shard ", name, " is missing"), folder.string(),
                        cat("the index names ", shard_names.size(), " shards; fetch the missing ones"));
    }
    const SafetensorsFile& shard = result.shards_.emplace_back(SafetensorsFile::open(folder / name));
    for (const auto& [tensor, view] : shard.tensors()) {
      if (!weight_map.empty()) {
        auto it = weight_map.find(tensor);
        if (it == weight_map.end() || it->second != name) {
          throw usage_error(cat("tensor \"", tensor, "\" lies in ", name, ", the index says ",
                                it == weight_map.end() ? "nothing of it" : it->second),
                            index_path.string(), kDamaged);
        }
      }
      result.tensors_.emplace(tensor, &view);
    }
  }
  for (const auto& [tensor, shard] : weight_map) {
    if (!result.tensors_.contains(tensor)) throw bad_tensor(folder / shard, tensor, "the index says it is here");
  }
  return result;
}

std::vector<std::string> ModelFiles::names() const {
  std::vector<std::string> names;
  for (const auto& [name, view] : tensors_) names.push_back(name);
  return names;
}

const TensorView* ModelFiles::find(std::string_view name) const {
  auto it = tensors_.find(name);
  return it == tensors_.end() ? nullptr : it->second;
}

const TensorView& ModelFiles::require(std::string_view name, const std::vector<int64_t>& shape) const {
  const TensorView* view = find(name);
  if (view == nullptr) {
    std::string close = nearest(name, names());
    throw usage_error(cat("tensor \"", name, "\" is missing"), folder_.string(),
                      close.empty() ? "config.json describes another model than the weights" : cat("there is ", close));
  }
  if (view->shape != shape) {
    throw usage_error(
        cat("tensor \"", name, "\" has shape ", shape_text(view->shape), ", config.json asks for ", shape_text(shape)),
        folder_.string(), "config.json describes another model than the weights");
  }
  return *view;
}

void write_safetensors(const fs::path& path, const std::vector<TensorToWrite>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<const TensorToWrite*> order;
  for (const TensorToWrite& tensor : tensors) order.push_back(&tensor);
  // Wide types first keeps every tensor aligned to its element, as the data starts at a multiple of 8.
  std::stable_sort(order.begin(), order.end(), [](const TensorToWrite* a, const TensorToWrite* b) {
    return dtype_bytes(a->dtype) > dtype_bytes(b->dtype);
  });
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  size_t offset = 0;
  for (const TensorToWrite* tensor : order) {
    size_t bytes = 0;
    CHECK(tensor_bytes(tensor->shape, tensor->dtype, bytes)) << tensor->name << " " << shape_text(tensor->shape);
    CHECK(!header.contains(tensor->name)) << "two tensors named " << tensor->name;
    header[tensor->name] = {
        {"dtype", dtype_name(tensor->dtype)}, {"shape", tensor->shape}, {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  uint64_t length = text.size();
  write_file_in_parts(path, [&](const AppendBytes& append) {
    append(std::as_bytes(std::span(&length, 1)));
    append(std::as_bytes(std::span(text)));
    std::vector<std::byte> buffer;
    for (const TensorToWrite* tensor : order) {
      size_t bytes = 0;
      tensor_bytes(tensor->shape, tensor->dtype, bytes);
      if (tensor->fill) {
        buffer.resize(bytes);
        tensor->fill(buffer);
        append(buffer);
      } else {
        CHECK(bytes == 0 || tensor->data != nullptr) << tensor->name;
        append({static_cast<const std::byte*>(tensor->data), bytes});
      }
    }
  });
}

}  // namespace tritonrl
