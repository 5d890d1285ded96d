// SPDX-License-Identifier: Apache-2.0
// Text <-> token ids for byte-level BPE tokenizers (SmolLM2, Qwen2.5, Llama 3, DeepSeek-Coder), equal to the
// `tokenizers` library's.
//
//   text -> added tokens cut out -> normalised -> words -> merged bytes -> ids          (encode)
//   ids -> bytes -> UTF-8, what is not valid replaced by U+FFFD                         (decode)
//
// And for Llama 2's and CodeLlama's, which came from SentencePiece: a space is U+2581 and stands in front of every
// stretch of text, all of which is one word; its characters are merged, those without a token as their bytes; a space
// in front of what is decoded is left out, whatever it stands behind.
//
// On purpose unlike `tokenizers`: merges never make a control token (of CodeLlama's, text could spell "\u2581<PRE>");
// Llama 2's are cut out of the text as it stands even where their file says "normalized" (`tokenizers` would then find
// "</s>" behind a space only); bytes that are no UTF-8 become one U+FFFD a stretch, and valid ones beside them stay.
//
// No token is ever added at the ends: prompts get theirs from the chat template (chat_template.h).
// Thread rule: all const methods may be called from any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/json.h"

namespace tritonrl {

struct TextPart {
  std::string text;
  bool control = false;  // May spell added tokens.
};

class Tokenizer {
 public:
  // Reads tokenizer.json; end and padding tokens from generation_config.json, config.json or tokenizer_config.json, the
  // first of them that names some. Throws Error (usage) for anything but the pipelines listed in pretokenizer.h.
  static Tokenizer load(const std::filesystem::path& folder);
  // The same from parsed JSON, without end or padding tokens. `where` is for messages.
  static Tokenizer parse(const Json& tokenizer, const std::string& where);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // "<|im_end|>" and the like in the text become their one id. Bytes that are not UTF-8 count as U+FFFD.
  std::vector<int32_t> encode(std::string_view text) const;
  // The same, but no text can become an added token: for content that comes from outside.
  std::vector<int32_t> encode_plain(std::string_view text) const;
  // The parts as one text, words across their borders included, in which only parts marked so spell added tokens.
  // `behind`: ids that it comes after. Where they end with text, Llama 2's puts no space in front of more.
  std::vector<int32_t> encode_parts(std::span<const TextPart> parts, std::span<const int32_t> behind = {}) const;

  // Valid UTF-8. Undefined ids give nothing; skip_special leaves out tokens marked special ("<|im_end|>").
  std::string decode(std::span<const int32_t> ids, bool skip_special = false) const;
  // What one id adds to the output (but for a space in front of all, see above): bytes that may be a part of a
  // character. Empty for undefined ids.
  std::string_view bytes_of(int32_t id) const;

  // Spelled as in tokenizer.json ("\u0120the", "<|im_end|>").
  std::optional<int32_t> token_to_id(std::string_view token) const;

  // Ids a model may sample: [0, vocab_size()) without holes if defined_count() == vocab_size(). A model's logits can be
  // wider (Qwen2.5 pads to 151,936 or 152,064 rows, 151,665 are defined): the rest must never be sampled.
  int32_t vocab_size() const;  // The largest defined id + 1.
  int32_t defined_count() const;
  bool is_defined(int32_t id) const;
  bool is_special(int32_t id) const;

  // Ids that end an answer; empty when the folder names none.
  const std::vector<int32_t>& eos_ids() const;
  std::optional<int32_t> pad_id() const;

 private:
  friend class StreamDecoder;
  struct State;
  explicit Tokenizer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Decodes ids one at a time. The pieces joined are decode() of all ids: bytes of an unfinished character wait for the
// next id. Outlived by its tokenizer. One thread.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special = false)
      : tokenizer_(&tokenizer), skip_special_(skip_special) {}

  std::string push(int32_t id);
  std::string finish();  // U+FFFD for bytes that still wait, else "". Ready for another sequence afterwards.

 private:
  const Tokenizer* tokenizer_;
  bool skip_special_, begun_ = false;
  std::string waiting_;  // At most 3 bytes between calls.
};

}  // namespace tritonrl
