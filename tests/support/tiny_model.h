// SPDX-License-Identifier: Apache-2.0
// For tests: a model folder that loads and trains in a fraction of a second. Its weights are those of a golden, its
// answers mean nothing.
#pragma once

#include <filesystem>
#include <string>

#include "base/files/json.h"
#include "base/process/build_paths.h"

namespace tritonrl {

// `window`: positions that the model knows.
inline void write_tiny_model(const std::filesystem::path& folder, int64_t window = 8192) {
  const std::filesystem::path goldens = source_dir() + "/tests/golden";
  std::filesystem::create_directories(folder);
  for (const char* file : {"model/llama_tiny/generation_config.json", "model/llama_tiny/model.safetensors",
                           "tokenizer/smollm2_tiny/tokenizer.json", "tokenizer/smollm2_tiny/tokenizer_config.json"}) {
    std::filesystem::path from = goldens / file;
    write_file(folder / from.filename(), read_file(from));
  }
  Json config = read_json(goldens / "model/llama_tiny/config.json");
  config["max_position_embeddings"] = window;
  write_file(folder / "config.json", config.dump(2));
}

}  // namespace tritonrl
