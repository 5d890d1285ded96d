// SPDX-License-Identifier: Apache-2.0
#include "model/files/export_adapter.h"

#include <ATen/ATen.h>

#include <filesystem>

#include "base/error.h"
#include "base/files/json.h"
#include "model/files/tensor_io.h"
#include "model/lora.h"

namespace tritonrl {

namespace fs = std::filesystem;

ExportReport export_adapter(const std::string& adapter, const std::string& base_model, const std::string& out) {
  load_lora_config(adapter);  // Refuses what is none.
  const fs::path file = fs::path(out) / "adapter_model.safetensors";
  if (fs::exists(file)) throw usage_error("holds an adapter already", out, "name a folder that is not there yet");
  auto tensors = SafetensorsFile::open(adapter + "/adapter_model.safetensors");
  ExportReport report;
  std::vector<TensorToWrite> rounded;
  for (const std::string& name : tensors.names())
    rounded.push_back(to_write(name, to_tensor(*tensors.find(name)).to(at::kBFloat16)));
  report.tensors = static_cast<int64_t>(rounded.size());
  Json config = read_json(adapter + "/adapter_config.json");
  config["base_model_name_or_path"] = base_model;
  fs::create_directories(out);
  write_file(fs::path(out) / "adapter_config.json", config.dump(2) + "\n");
  write_safetensors(file, rounded);  // Last: with it the folder is whole.
  report.bytes = static_cast<int64_t>(fs::file_size(file));
  return report;
}

}  // namespace tritonrl
