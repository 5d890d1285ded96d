// SPDX-License-Identifier: Apache-2.0
#include "model/files/merge_folder.h"

#include <ATen/ATen.h>

#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "model/files/tensor_io.h"
#include "model/lora.h"

namespace tritonrl {

namespace fs = std::filesystem;

MergeReport merge_adapter(const std::string& base, const std::string& adapter, const std::string& out) {
  at::InferenceMode no_autograd;
  LoraConfig config = load_lora_config(adapter);
  double scale = config.alpha / static_cast<double>(config.rank);
  std::string update_file = adapter + "/adapter_model.safetensors";
  auto updates = SafetensorsFile::open(update_file);
  auto model = ModelFiles::open(base);
  if (fs::exists(fs::path(out) / "model.safetensors")) {
    throw usage_error("holds a model already", out, "name a folder that is not there yet");
  }
  MergeReport report;
  std::vector<TensorToWrite> tensors;
  for (const std::string& name : model.names()) {
    const TensorView& weight = *model.find(name);
    TensorToWrite to{name, weight.dtype, weight.shape, weight.data};
    constexpr std::string_view kWeight = ".weight";
    std::string stem = "base_model.model." + name;
    if (stem.ends_with(kWeight)) stem.resize(stem.size() - kWeight.size());
    const TensorView *a = updates.find(stem + ".lora_A.weight"), *b = updates.find(stem + ".lora_B.weight");
    if (a && b) {
      if (weight.shape.size() != 2 || a->shape != std::vector<int64_t>{config.rank, weight.shape[1]} ||
          b->shape != std::vector<int64_t>{weight.shape[0], config.rank}) {
        throw usage_error("the update of '" + name + "' does not fit " + shape_text(weight.shape), update_file,
                          "was the adapter made for another model?");
      }
      to.data = nullptr;
      to.fill = [&weight, a, b, scale](std::span<std::byte> bytes) {
        at::Tensor plain = to_tensor(weight);
        at::Tensor merged =
            plain.to(at::kFloat).add_(at::mm(to_tensor(*b).to(at::kFloat), to_tensor(*a).to(at::kFloat)), scale);
        merged = merged.to(plain.scalar_type()).contiguous();
        std::memcpy(bytes.data(), merged.data_ptr(), bytes.size());
      };
      ++report.merged;
    }
    tensors.push_back(std::move(to));
  }
  auto parts = static_cast<int64_t>(updates.names().size());
  if (parts != 2 * report.merged) {
    throw usage_error(cat(parts - 2 * report.merged, " of its ", parts, " tensors belong to no matrix of ", base),
                      update_file, "was the adapter made for another model?");
  }
  report.tensors = static_cast<int64_t>(tensors.size());
  fs::create_directories(out);
  for (const auto& entry : fs::directory_iterator(base)) {
    const fs::path& file = entry.path();
    bool weights = file.extension() == ".safetensors" || file.string().ends_with(".safetensors.index.json");
    if (!entry.is_regular_file() || weights) continue;
    fs::copy_file(file, fs::path(out) / file.filename(), fs::copy_options::overwrite_existing);
  }
  write_safetensors(fs::path(out) / "model.safetensors", tensors);  // Last: with it the folder is whole.
  return report;
}

}  // namespace tritonrl
