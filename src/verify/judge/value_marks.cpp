// SPDX-License-Identifier: Apache-2.0
#include "verify/judge/value_marks.h"

#include <ATen/ATen.h>

#include <functional>
#include <random>
#include <string_view>

#include "verify/replay/own_kernels.h"

namespace tritonrl {

ValueMarks mark_values(const Tape& tape, uint64_t key, const ValueMarks* only) {
  struct Storage {
    const at::Tensor* one;
    std::vector<int64_t> values;
  };
  std::map<const c10::StorageImpl*, Storage> storages;
  for (int64_t id = 0; id < static_cast<int64_t>(tape.trace().values.size()); ++id) {
    if (!tape.has(id) || (only && !only->count(id))) continue;
    const at::Tensor& value = tape.value(id);
    if (value.storage().nbytes() == 0) continue;
    Storage& storage = storages.try_emplace(value.storage().unsafeGetStorageImpl(), Storage{&value, {}}).first->second;
    storage.values.push_back(id);
  }
  ValueMarks marks;
  if (storages.empty()) return marks;
  std::vector<uint64_t> words;
  const at::Tensor& any = *storages.begin()->second.one;
  if (any.is_cuda()) {
    auto count = static_cast<int64_t>(storages.size());
    at::Tensor sums = at::zeros({count}, any.options().dtype(at::kLong));
    auto out = reinterpret_cast<CUdeviceptr>(sums.data_ptr());
    for (const auto& [storage, held] : storages) {
      OwnKernels::get().hash(reinterpret_cast<CUdeviceptr>(storage->data()), storage->nbytes(), key, out);
      out += sizeof(uint64_t);
    }
    at::Tensor host = sums.cpu();
    const auto* begin = static_cast<const uint64_t*>(host.data_ptr());
    words.assign(begin, begin + count);
  } else {
    for (const auto& [storage, held] : storages) {
      words.push_back(std::hash<std::string_view>{}({static_cast<const char*>(storage->data()), storage->nbytes()}));
    }
  }
  size_t place = 0;
  for (const auto& [storage, held] : storages) {
    for (int64_t id : held.values) marks[id] = words[place];
    ++place;
  }
  return marks;
}

std::vector<int64_t> changed_values(const ValueMarks& before, const ValueMarks& after) {
  std::vector<int64_t> found;
  for (const auto& [id, mark] : before) {
    auto it = after.find(id);
    if (it != after.end() && it->second != mark) found.push_back(id);
  }
  return found;
}

uint64_t new_mark_key() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

}  // namespace tritonrl
