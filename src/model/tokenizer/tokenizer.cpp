// SPDX-License-Identifier: Apache-2.0
// Loading of tokenizer.json, the word cache, decoding.
#include "model/tokenizer/tokenizer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <mutex>
#include <unordered_map>

#include "base/error.h"
#include "base/text.h"
#include "model/tokenizer/bpe.h"
#include "model/tokenizer/pretokenizer.h"
#include "model/tokenizer/unicode.h"

namespace tritonrl {
namespace {

constexpr int64_t kMaxId = 1 << 24;  // Far above any vocabulary; keeps a damaged file from asking for gigabytes.
constexpr size_t kCachedWords = 1 << 16, kCachedWordBytes = 48;

struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

template <class T>
using StringMap = std::unordered_map<std::string, T, StringHash, std::equal_to<>>;

struct AddedToken {
  std::string content;
  int32_t id = 0;
};

Error bad(const std::string& what, const std::string& where) {
  return usage_error(what, where,
                     "BPE is supported as SmolLM2, Qwen2.5, Llama 3, DeepSeek-Coder, Llama 2 and CodeLlama have it");
}

int32_t checked_id(const Json& id, const std::string& token, const std::string& where) {
  if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() >= kMaxId) {
    throw bad(cat("token ", valid_utf8(token), " has the id ", id.dump()), where);
  }
  return id.get<int32_t>();
}

bool is_off(const Json& object, const char* key) {
  auto it = object.find(key);
  return it == object.end() || it->is_null() || *it == false || *it == "" || *it == 0.0;
}

const Json& member(const Json& object, const char* key, const std::string& where) {
  auto it = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || it == object.end()) throw bad(cat("\"", key, "\" is missing"), where);
  return *it;
}

constexpr std::string_view kSpace = "\u2581";  // For spaces, with byte fallback.

// What a token of a vocabulary with byte fallback stands for: "<0x0A>" for the byte, others for their text.
std::string fallback_bytes(const std::string& token) {
  if (token.size() == 6 && token.starts_with("<0x") && token[5] == '>') {
    unsigned byte = 0;
    auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
    if (error == std::errc() && end == token.data() + 5) return std::string(1, static_cast<char>(byte));
  }
  return replace_all(token, kSpace, " ");
}

// Llama 2's: a space in front, spaces as U+2581, and back.
void check_fallback_pipeline(const Json& tokenizer, const std::string& where) {
  auto replace = [](std::string_view from, std::string_view to) {
    return Json{{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
  };
  const Json normalizer = {{"type", "Sequence"},
                           {"normalizers", {{{"type", "Prepend"}, {"prepend", kSpace}}, replace(" ", kSpace)}}};
  const Json decoder = {{"type", "Sequence"},
                        {"decoders",
                         {replace(kSpace, " "),
                          {{"type", "ByteFallback"}},
                          {{"type", "Fuse"}},
                          {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}};
  auto expect = [&](const char* key, const Json& expected) {
    auto it = tokenizer.find(key);
    if ((it == tokenizer.end() ? Json() : *it) == expected) return;
    throw bad(cat("byte fallback with the ", key, " ", it == tokenizer.end() ? "null" : valid_utf8(it->dump())), where);
  };
  expect("normalizer", normalizer);
  expect("pre_tokenizer", Json());
  expect("decoder", decoder);
}

// What puts tokens at the ends of a text may be there: we add none, chat templates spell theirs.
void check_post_processor(const Json& post, const std::string& where) {
  if (post.is_null()) return;
  std::string type = post.is_object() ? post.value("type", "") : "";
  if (type == "Sequence") {
    for (const Json& step : member(post, "processors", where)) check_post_processor(step, where);
  } else if (type != "ByteLevel" && type != "TemplateProcessing") {
    throw bad(cat("the post_processor ", valid_utf8(type), " is not supported"), where);
  }
}

}  // namespace

struct Tokenizer::State {
  std::string where;
  std::optional<PreTokenizer> pre_tokenizer;  // Without byte fallback.
  std::optional<Bpe> bpe;
  bool byte_fallback = false;  // Llama 2's pipeline.
  std::array<int32_t, 256> byte_ids = {};
  StringMap<int32_t> ids;                          // Token text -> id.
  std::vector<std::string> bytes;                  // By id.
  std::vector<char> defined, special, only_added;  // The last: not of the model's vocabulary.
  int32_t defined_count = 0;
  bool ignore_merges = false;     // A word that is a token as a whole is not merged up to it.
  std::vector<AddedToken> added;  // Longest first.
  std::array<bool, 256> starts_added = {};
  std::vector<int32_t> eos_ids;
  std::optional<int32_t> pad_id;

  // Words seen before. One encode() uses it at a time; another that runs meanwhile does without.
  mutable std::mutex cache_mutex;
  mutable StringMap<std::vector<int32_t>> cache;

  void define(const std::string& token, int32_t id) {
    auto index = static_cast<size_t>(id);
    if (index >= bytes.size())
      bytes.resize(index + 1), defined.resize(index + 1), special.resize(index + 1), only_added.resize(index + 1);
    if (defined[index]) throw bad(cat("two tokens have the id ", id), where);
    defined[index] = 1;
    ++defined_count;
    bytes[index] = byte_fallback ? fallback_bytes(token) : byte_level_bytes(token);
    ids.emplace(token, id);
  }

  int32_t id_of(std::string_view token, size_t merge) const {
    auto it = ids.find(token);
    if (it == ids.end())
      throw bad(cat("merge ", merge, " needs the token ", valid_utf8(token), ", which is missing"), where);
    return it->second;
  }

  // May text become this token by being looked up or merged?
  bool is_word(int32_t id) const { return !only_added[static_cast<size_t>(id)] && !special[static_cast<size_t>(id)]; }

  std::vector<Merge> load_model(const Json& model);
  void load_added(const Json& tokens);
  void encode_words(std::string_view text, std::vector<int32_t>& out) const;
  void encode_with_fallback(std::string_view text, bool goes_on, std::vector<int32_t>& out) const;
  void encode_word(std::string_view word, std::vector<int32_t>& out) const;
};

std::vector<Merge> Tokenizer::State::load_model(const Json& model) {
  const Json& type = member(model, "type", where);
  if (type != "BPE") {
    throw usage_error(cat("unknown tokenizer model type ", type.dump()), where, "only BPE is supported");
  }
  for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix", "unk_token", "ignore_merges"}) {
    std::string_view name = key;
    if (name == "ignore_merges" && !byte_fallback) continue;
    if (name == "unk_token" && byte_fallback) continue;  // No character is unknown.
    if (!is_off(model, key))
      throw bad(cat("the BPE option ", key, " = ", model[key].dump(), " is not supported"), where);
  }
  ignore_merges = !is_off(model, "ignore_merges");
  const Json &vocab = member(model, "vocab", where), &list = member(model, "merges", where);
  if (!vocab.is_object() || vocab.empty() || !list.is_array()) throw bad("vocab or merges have the wrong type", where);
  for (const auto& [token, id] : vocab.items()) define(token, checked_id(id, token, where));

  std::vector<Merge> merges;
  merges.reserve(list.size());
  for (const Json& merge : list) {  // "a b" or, since tokenizers 0.20, ["a", "b"].
    std::string left, right;
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      left = merge[0], right = merge[1];
    } else if (merge.is_string() && std::ranges::count(merge.get_ref<const std::string&>(), ' ') == 1) {
      const auto& text = merge.get_ref<const std::string&>();
      left = text.substr(0, text.find(' ')), right = text.substr(text.find(' ') + 1);
    } else {
      throw bad(cat("merge ", merges.size(), " is not a pair: ", valid_utf8(merge.dump())), where);
    }
    size_t n = merges.size();
    merges.push_back({id_of(left, n), id_of(right, n), id_of(left + right, n)});
  }
  for (int b = 0; b < 256; ++b) {
    constexpr const char* kHex = "0123456789ABCDEF";
    std::string token = byte_fallback ? cat("<0x", std::string(1, kHex[b / 16]), std::string(1, kHex[b % 16]), ">")
                                      : byte_level_text(std::string(1, static_cast<char>(b)));
    auto it = ids.find(token);
    if (it == ids.end() && byte_fallback) throw bad(cat("the token ", token, " is missing"), where);
    byte_ids[static_cast<size_t>(b)] = it == ids.end() ? -1 : it->second;
  }
  return merges;
}

void Tokenizer::State::load_added(const Json& tokens) {
  if (!tokens.is_array()) throw bad("added_tokens is not a list", where);
  for (const Json& token : tokens) {
    const Json& content = member(token, "content", where);
    if (!content.is_string() || content == "") throw bad("an added token has no content", where);
    std::string text = content.get<std::string>();
    for (const char* key : {"lstrip", "rstrip", "single_word", "normalized"}) {
      if (key == std::string_view("normalized")) {
        // Nothing is normalised; or it is a control token, which is cut out of the text as it stands (tokenizer.h).
        if (byte_fallback ? !is_off(token, "special") : !pre_tokenizer->uses_nfc()) continue;
      }
      if (!is_off(token, key)) throw bad(cat("added token ", text, ": ", key, " is not supported"), where);
    }
    int32_t id = checked_id(member(token, "id", where), text, where);
    auto known = ids.find(text);
    if (known == ids.end()) {
      define(text, id);
      only_added[static_cast<size_t>(id)] = 1;
    } else if (known->second != id) {
      throw bad(cat("added token ", text, " has the ids ", known->second, " and ", id), where);
    }
    special[static_cast<size_t>(id)] = !is_off(token, "special");
    starts_added[static_cast<unsigned char>(text[0])] = true;
    added.push_back({std::move(text), id});
  }
  std::ranges::stable_sort(added, std::greater<>(), [](const AddedToken& t) { return t.content.size(); });
}

void Tokenizer::State::encode_word(std::string_view word, std::vector<int32_t>& out) const {
  if (ignore_merges) {
    auto it = ids.find(byte_level_text(word));
    if (it != ids.end() && is_word(it->second)) return out.push_back(it->second);
  }
  bpe->encode(word, out);
}

void Tokenizer::State::encode_words(std::string_view text, std::vector<int32_t>& out) const {
  if (text.empty()) return;
  std::string normal;
  if (pre_tokenizer->uses_nfc()) text = normal = nfc(text);
  thread_local std::vector<std::string_view> words;
  words.clear();
  pre_tokenizer->split(text, words);
  std::unique_lock lock(cache_mutex, std::try_to_lock);
  for (std::string_view word : words) {
    if (!lock || word.size() > kCachedWordBytes) {
      encode_word(word, out);
      continue;
    }
    auto it = cache.find(word);
    if (it == cache.end()) {
      size_t before = out.size();
      encode_word(word, out);
      if (cache.size() < kCachedWords) {
        cache.emplace(word, std::vector<int32_t>(out.begin() + static_cast<ptrdiff_t>(before), out.end()));
      }
    } else {
      out.insert(out.end(), it->second.begin(), it->second.end());
    }
  }
}

// `goes_on`: from text that is encoded already.
void Tokenizer::State::encode_with_fallback(std::string_view text, bool goes_on, std::vector<int32_t>& out) const {
  if (text.empty()) return;
  std::string normal(goes_on ? "" : kSpace);
  for (char c : text) c == ' ' ? normal += kSpace : normal += c;
  std::vector<int32_t> tokens;
  for (size_t at = 0; at < normal.size();) {
    size_t length = 1;
    while (at + length < normal.size() && (static_cast<unsigned char>(normal[at + length]) & 0xc0) == 0x80) ++length;
    std::string_view character(normal.data() + at, length);
    auto it = ids.find(character);
    if (it != ids.end() && is_word(it->second)) {
      tokens.push_back(it->second);
    } else {
      for (char c : character) tokens.push_back(byte_ids[static_cast<unsigned char>(c)]);
    }
    at += length;
  }
  bpe->merge(tokens, out);
}

Tokenizer::Tokenizer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Tokenizer Tokenizer::parse(const Json& tokenizer, const std::string& where) {
  auto state = std::make_unique<State>();
  state->where = where;
  if (!tokenizer.is_object()) throw bad("not a JSON object", where);
  const Json &model = member(tokenizer, "model", where), &decoder = member(tokenizer, "decoder", where);
  state->byte_fallback = model.is_object() && !is_off(model, "byte_fallback");
  if (state->byte_fallback) {
    check_fallback_pipeline(tokenizer, where);
  } else {
    state->pre_tokenizer = PreTokenizer::from_json(tokenizer, where);
    if (!decoder.is_object() || decoder.value("type", "") != "ByteLevel") {
      throw bad(cat("unknown decoder ", decoder.dump()), where);
    }
  }
  std::vector<Merge> merges = state->load_model(model);
  if (tokenizer.contains("added_tokens")) state->load_added(tokenizer["added_tokens"]);
  // CodeLlama's "\u2581<PRE>" is a word of its vocabulary, but text must not merge into it.
  std::erase_if(merges, [&](const Merge& merge) { return !state->is_word(merge.result); });
  state->bpe.emplace(state->byte_ids, merges);
  if (auto post = tokenizer.find("post_processor"); post != tokenizer.end()) check_post_processor(*post, where);
  return Tokenizer(std::move(state));
}

Tokenizer Tokenizer::load(const std::filesystem::path& folder) {
  std::filesystem::path path = folder / "tokenizer.json";
  Tokenizer result = parse(read_json(path), path.string());
  State& state = *result.state_;
  for (const char* file : {"generation_config.json", "config.json", "tokenizer_config.json"}) {
    if (!std::filesystem::exists(folder / file)) continue;
    Json config = read_json(folder / file);
    if (!config.is_object()) throw bad("not a JSON object", (folder / file).string());
    auto add = [&](const Json& id) {
      if (id.is_number_unsigned() && state.eos_ids.size() < 64) state.eos_ids.push_back(id.get<int32_t>());
    };
    if (state.eos_ids.empty()) {
      if (config.contains("eos_token_id") && config["eos_token_id"].is_array()) {
        for (const Json& id : config["eos_token_id"]) add(id);
      } else if (config.contains("eos_token_id")) {
        add(config["eos_token_id"]);
      } else if (config.contains("eos_token")) {  // Text, or an added token with its text as "content".
        Json token = config["eos_token"];
        if (token.is_object()) token = token.value("content", Json());
        auto id = token.is_string() ? result.token_to_id(token.get<std::string>()) : std::nullopt;
        if (id) state.eos_ids.push_back(*id);
      }
    }
    if (!state.pad_id && config.contains("pad_token_id") && config["pad_token_id"].is_number_unsigned()) {
      state.pad_id = config["pad_token_id"].get<int32_t>();
    }
  }
  for (int32_t id : state.eos_ids) {
    if (!result.is_defined(id)) throw bad(cat("the end token ", id, " is not in the vocabulary"), path.string());
  }
  return result;
}

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  TextPart part{std::string(text), true};
  return encode_parts({&part, 1});
}

std::vector<int32_t> Tokenizer::encode_plain(std::string_view text) const {
  TextPart part{std::string(text), false};
  return encode_parts({&part, 1});
}

std::vector<int32_t> Tokenizer::encode_parts(std::span<const TextPart> parts, std::span<const int32_t> behind) const {
  const State& state = *state_;
  std::vector<int32_t> out;
  std::string waiting;  // Between two added tokens, so far.
  bool goes_on = !behind.empty() && std::ranges::find(state.added, behind.back(), &AddedToken::id) == state.added.end();
  auto encode_waiting = [&] {
    if (state.byte_fallback) {
      state.encode_with_fallback(utf8_lossy(waiting), goes_on, out);
    } else {
      state.encode_words(utf8_lossy(waiting), out);
    }
    goes_on = false;
    waiting.clear();
  };
  for (const TextPart& part : parts) {
    std::string_view rest = part.text;
    if (!part.control) {
      waiting += rest;
      continue;
    }
    size_t begin = 0;
    for (size_t at = 0; at < rest.size();) {
      const AddedToken* found = nullptr;
      if (state.starts_added[static_cast<unsigned char>(rest[at])]) {
        auto it = std::ranges::find_if(state.added,
                                       [&](const AddedToken& t) { return rest.substr(at).starts_with(t.content); });
        if (it != state.added.end()) found = &*it;
      }
      if (found == nullptr) {
        ++at;
        continue;
      }
      waiting += rest.substr(begin, at - begin);
      encode_waiting();
      out.push_back(found->id);
      begin = at += found->content.size();
    }
    waiting += rest.substr(begin);
  }
  encode_waiting();
  return out;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  std::string bytes;
  for (int32_t id : ids) {
    if (!skip_special || !is_special(id)) bytes += bytes_of(id);
  }
  if (state_->byte_fallback && bytes.starts_with(' ')) bytes.erase(0, 1);
  return utf8_lossy(bytes);
}

std::string_view Tokenizer::bytes_of(int32_t id) const {
  return is_defined(id) ? std::string_view(state_->bytes[static_cast<size_t>(id)]) : std::string_view();
}

std::optional<int32_t> Tokenizer::token_to_id(std::string_view token) const {
  auto it = state_->ids.find(token);
  return it == state_->ids.end() ? std::nullopt : std::optional(it->second);
}

int32_t Tokenizer::vocab_size() const { return static_cast<int32_t>(state_->bytes.size()); }
int32_t Tokenizer::defined_count() const { return state_->defined_count; }
bool Tokenizer::is_defined(int32_t id) const {
  return id >= 0 && id < vocab_size() && state_->defined[static_cast<size_t>(id)];
}
bool Tokenizer::is_special(int32_t id) const { return is_defined(id) && state_->special[static_cast<size_t>(id)]; }
const std::vector<int32_t>& Tokenizer::eos_ids() const { return state_->eos_ids; }
std::optional<int32_t> Tokenizer::pad_id() const { return state_->pad_id; }

std::string StreamDecoder::push(int32_t id) {
  if (skip_special_ && tokenizer_->is_special(id)) return "";
  std::string_view bytes = tokenizer_->bytes_of(id);
  if (!begun_ && tokenizer_->state_->byte_fallback && bytes.starts_with(' ')) bytes.remove_prefix(1);
  begun_ |= !tokenizer_->bytes_of(id).empty();
  waiting_ += bytes;
  size_t ready = waiting_.size() - unfinished_utf8(waiting_);
  std::string out = utf8_lossy(std::string_view(waiting_).substr(0, ready));
  waiting_.erase(0, ready);
  return out;
}

std::string StreamDecoder::finish() {
  std::string out = utf8_lossy(waiting_);
  waiting_.clear();
  begun_ = false;
  return out;
}

}  // namespace tritonrl
