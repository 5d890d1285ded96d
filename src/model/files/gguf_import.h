// SPDX-License-Identifier: Apache-2.0
// Turns a GGUF file of a SmolLM2 model into a Hugging Face folder that transformers, PEFT and this program load.
//
// tools/import_gguf.py does it, with the reader and the de-quantiser of the package gguf. Weights become bfloat16;
// llama.cpp's reordering of the q and k rows is undone; the tokenizer, its special tokens and the chat template come
// out of the file's own metadata. The same input gives the same bytes.
#pragma once

#include <cstdint>
#include <filesystem>

namespace tritonrl {

struct ImportReport {
  int64_t tensors = 0;
  int64_t parameters = 0;
  int64_t vocabulary = 0;
  bool already_there = false;  // The folder held this import; nothing was written.
};

// Writes model.safetensors, config.json, generation_config.json, tokenizer.json, tokenizer_config.json and
// special_tokens_map.json into `folder`, which appears whole or not at all. Takes seconds, and several times the size
// of the largest tensor in memory. An earlier import of the same file is left alone. Throws Error (usage) for a file
// that is damaged or of another architecture or tokenizer, and for a folder that holds anything else; (environment)
// when it cannot be written, or Python or its package is missing.
ImportReport import_gguf(const std::filesystem::path& gguf, const std::filesystem::path& folder);

}  // namespace tritonrl
