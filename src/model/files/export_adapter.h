// SPDX-License-Identifier: Apache-2.0
// An adapter of a run -> a small folder for others: bfloat16, the base model by its name, no path of this machine.
#pragma once

#include <cstdint>
#include <string>

namespace tritonrl {

struct ExportReport {
  int64_t tensors = 0;
  int64_t bytes = 0;  // Of adapter_model.safetensors.
};

// Reads an adapter in PEFT's layout and writes adapter_model.safetensors in bfloat16 and adapter_config.json with
// `base_model` (a hub id) in place of a folder; `out` is made where it is missing. Throws Error (usage) for a folder
// that holds no adapter, or an `out` that holds one.
ExportReport export_adapter(const std::string& adapter, const std::string& base_model, const std::string& out);

}  // namespace tritonrl
