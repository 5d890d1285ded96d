// SPDX-License-Identifier: Apache-2.0
// Cuts text into the words BPE works on, with the exact rules of a tokenizer.json.
//
//   SmolLM2   no normaliser; every digit alone, GPT-2's pattern on what lies between digits
//   Qwen2.5   NFC; its own pattern (contractions in any case, single digits, newlines kept with punctuation)
//
// have one pattern each that finds a word after the other. Other sequences of Split (a regular expression, isolated),
// Digits and ByteLevel are run a step at a time: Llama 3, GPT-2, StarCoder, DeepSeek-Coder. Expressions are given to
// PCRE2 with their classes spelled out as `tokenizers` understands them; one with anything that could differ is
// refused, as is all else: a pattern that is nearly right gives ids that are nearly right, and a model trained on those
// is worse for no visible reason.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/json.h"

namespace tritonrl {

class PreTokenizer {
 public:
  // Recognises "normalizer" and "pre_tokenizer" of a tokenizer.json. Throws Error (usage) "unknown tokenizer pattern".
  static PreTokenizer from_json(const Json& tokenizer, const std::string& where);

  bool uses_nfc() const { return uses_nfc_; }

  // Appends the words of `text`, in order; joined they are `text`. The views point into it.
  // REQUIRES: valid UTF-8, already normalised. Any thread.
  void split(std::string_view text, std::vector<std::string_view>& words) const;

 private:
  struct Pattern;
  std::shared_ptr<const Pattern> pattern_;             // Finds every word, or null:
  std::vector<std::shared_ptr<const Pattern>> steps_;  // what each finds is a word, and what is left between, too.
  bool uses_nfc_ = false;
};

}  // namespace tritonrl
