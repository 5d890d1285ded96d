// SPDX-License-Identifier: Apache-2.0
// Name mapping, q/k row order, configs and tokenizer files of an imported model.
#include "model/gguf_import.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "base/check.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "model/gguf.h"
#include "model/safetensors.h"

namespace tritonrl {
namespace {

namespace fs = std::filesystem;

// Part of the mark an import leaves in its weights: raise it when the output changes.
constexpr const char* kImporter = "tritonrl-gguf-1";
constexpr const char* kFiles[] = {"config.json",       "generation_config.json",
                                  "model.safetensors", "special_tokens_map.json",
                                  "tokenizer.json",    "tokenizer_config.json"};
enum TokenType : int64_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

Error refused(const GgufFile& file, const std::string& what) {
  return usage_error(what, file.path().string(),
                     "only SmolLM2 models (architecture llama, tokenizer smollm) can be imported");
}

struct Shape {  // Of the model.
  int64_t layers = 0, hidden = 0, intermediate = 0, heads = 0, kv_heads = 0, head_dim = 0, vocab = 0, positions = 0;
  double rope_theta = 0, norm_eps = 0;
  bool tied = false;
};

// The shortest decimal that is this float: 1e-05 where the double of it prints as 9.999999747378752e-06.
double shortest(double value) {
  char buffer[32];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, static_cast<float>(value)).ptr;
  double result = 0;
  std::from_chars(buffer, end, result);
  return result;
}

Shape read_shape(const GgufFile& file) {
  if (file.text("general.architecture") != "llama") {
    throw refused(file, cat("architecture ", file.text("general.architecture")));
  }
  for (const auto& [key, value] : file.values()) {
    if (key.starts_with("llama.rope.scaling.") || key.starts_with("llama.expert")) {
      throw refused(file, cat("the key ", key, " is not supported"));
    }
  }
  Shape s;
  s.layers = file.integer("llama.block_count");
  s.hidden = file.integer("llama.embedding_length");
  s.intermediate = file.integer("llama.feed_forward_length");
  s.heads = file.integer("llama.attention.head_count");
  s.kv_heads = file.has("llama.attention.head_count_kv") ? file.integer("llama.attention.head_count_kv") : s.heads;
  s.positions = file.integer("llama.context_length");
  s.vocab = static_cast<int64_t>(file.texts("tokenizer.ggml.tokens").size());
  s.norm_eps = shortest(file.number("llama.attention.layer_norm_rms_epsilon"));
  s.rope_theta = file.has("llama.rope.freq_base") ? shortest(file.number("llama.rope.freq_base")) : 10000.0;
  s.tied = file.find("output.weight") == nullptr;
  bool plausible = s.layers > 0 && s.layers < 10000 && s.hidden > 0 && s.intermediate > 0 && s.heads > 0 &&
                   s.kv_heads > 0 && s.vocab > 0 && s.positions > 0;
  if (!plausible || s.hidden % s.heads != 0 || s.heads % s.kv_heads != 0 || s.hidden / s.heads % 2 != 0) {
    throw refused(file, cat("impossible sizes: ", s.layers, " layers, ", s.hidden, " wide, ", s.heads, "/", s.kv_heads,
                            " heads"));
  }
  s.head_dim = s.hidden / s.heads;
  for (const char* key : {"llama.rope.dimension_count", "llama.attention.key_length", "llama.attention.value_length"}) {
    if (file.has(key) && file.integer(key) != s.head_dim) throw refused(file, cat(key, " is not the head size"));
  }
  return s;
}

struct Mapping {
  std::string from, to;
  std::vector<int64_t> shape;
  int64_t rope_heads = 0;  // Rows are reordered in this many heads; 0 = as they are.
};

std::vector<Mapping> mappings(const Shape& s) {
  std::vector<Mapping> all = {{"token_embd.weight", "model.embed_tokens.weight", {s.vocab, s.hidden}},
                              {"output_norm.weight", "model.norm.weight", {s.hidden}}};
  if (!s.tied) all.push_back({"output.weight", "lm_head.weight", {s.vocab, s.hidden}});
  int64_t q = s.heads * s.head_dim, kv = s.kv_heads * s.head_dim;
  for (int64_t i = 0; i < s.layers; ++i) {
    std::string from = cat("blk.", i, "."), to = cat("model.layers.", i, ".");
    all.push_back({from + "attn_norm.weight", to + "input_layernorm.weight", {s.hidden}});
    all.push_back({from + "attn_q.weight", to + "self_attn.q_proj.weight", {q, s.hidden}, s.heads});
    all.push_back({from + "attn_k.weight", to + "self_attn.k_proj.weight", {kv, s.hidden}, s.kv_heads});
    all.push_back({from + "attn_v.weight", to + "self_attn.v_proj.weight", {kv, s.hidden}});
    all.push_back({from + "attn_output.weight", to + "self_attn.o_proj.weight", {s.hidden, q}});
    all.push_back({from + "ffn_norm.weight", to + "post_attention_layernorm.weight", {s.hidden}});
    all.push_back({from + "ffn_gate.weight", to + "mlp.gate_proj.weight", {s.intermediate, s.hidden}});
    all.push_back({from + "ffn_up.weight", to + "mlp.up_proj.weight", {s.intermediate, s.hidden}});
    all.push_back({from + "ffn_down.weight", to + "mlp.down_proj.weight", {s.hidden, s.intermediate}});
  }
  return all;
}

// Row by row into bfloat16. llama.cpp rotates neighbouring pairs of rows (2i, 2i + 1) where transformers rotates row i
// of a head with row i + head_dim / 2, so its converter interleaved the halves; here they are put back.
void fill_tensor(const GgufTensor& tensor, const Mapping& mapping, std::span<std::byte> out) {
  int64_t columns = tensor.shape.back(), rows = static_cast<int64_t>(tensor.elements) / columns;
  CHECK(out.size() == tensor.elements * 2) << tensor.name;
  size_t row_bytes = tensor.bytes / static_cast<size_t>(rows);
  int64_t head_dim = mapping.rope_heads > 0 ? rows / mapping.rope_heads : 0;
  std::vector<float> values(static_cast<size_t>(columns));
  std::vector<uint16_t> rounded(static_cast<size_t>(columns));
  for (int64_t row = 0; row < rows; ++row) {
    int64_t target = row;
    if (head_dim > 0) {
      int64_t in_head = row % head_dim;
      target = row - in_head + in_head % 2 * (head_dim / 2) + in_head / 2;
    }
    dequantize(tensor.type, tensor.data + static_cast<size_t>(row) * row_bytes, values.size(), values.data());
    std::transform(values.begin(), values.end(), rounded.begin(), bf16_from_float);
    std::memcpy(out.data() + static_cast<size_t>(target * columns) * 2, rounded.data(), rounded.size() * 2);
  }
}

struct Special {  // Ids of the tokens with a role; the vocabulary's index is checked.
  int64_t bos = 0, eos = 0;
  std::optional<int64_t> unk, pad;
};

Special read_special(const GgufFile& file, int64_t vocab) {
  auto id = [&](const char* key) {
    int64_t value = file.integer(key);
    if (value < 0 || value >= vocab) throw refused(file, cat(key, " = ", value, " is not in the vocabulary"));
    return value;
  };
  Special s{id("tokenizer.ggml.bos_token_id"), id("tokenizer.ggml.eos_token_id"), {}, {}};
  if (file.has("tokenizer.ggml.unknown_token_id")) s.unk = id("tokenizer.ggml.unknown_token_id");
  if (file.has("tokenizer.ggml.padding_token_id")) s.pad = id("tokenizer.ggml.padding_token_id");
  return s;
}

Json model_config(const Shape& s, const Special& special) {
  Json config = {
      {"architectures", {"LlamaForCausalLM"}},
      {"attention_bias", false},
      {"attention_dropout", 0.0},
      {"bos_token_id", special.bos},
      {"eos_token_id", special.eos},
      {"head_dim", s.head_dim},
      {"hidden_act", "silu"},
      {"hidden_size", s.hidden},
      {"initializer_range", 0.02},
      {"intermediate_size", s.intermediate},
      {"max_position_embeddings", s.positions},
      {"mlp_bias", false},
      {"model_type", "llama"},
      {"num_attention_heads", s.heads},
      {"num_hidden_layers", s.layers},
      {"num_key_value_heads", s.kv_heads},
      {"pad_token_id", special.pad ? Json(*special.pad) : Json()},
      {"pretraining_tp", 1},
      {"rms_norm_eps", s.norm_eps},
      {"rope_scaling", nullptr},
      {"rope_theta", s.rope_theta},
      {"tie_word_embeddings", s.tied},
      {"torch_dtype", "bfloat16"},
      {"use_cache", true},
      {"vocab_size", s.vocab},
  };
  return config;
}

Json generation_config(const Special& special) {
  Json config = {{"_from_model_config", true}, {"bos_token_id", special.bos}, {"eos_token_id", special.eos}};
  if (special.pad) config["pad_token_id"] = *special.pad;
  return config;
}

struct TokenizerFiles {
  Json tokenizer, config, special_tokens;
};

Json added_token(const std::string& content, bool special) {
  return {{"content", content}, {"lstrip", false},      {"normalized", false},
          {"rstrip", false},    {"single_word", false}, {"special", special}};
}

TokenizerFiles tokenizer_files(const GgufFile& file, const Shape& shape, const Special& special) {
  if (file.text("tokenizer.ggml.model") != "gpt2" || file.text("tokenizer.ggml.pre") != "smollm") {
    throw refused(file, cat("unknown tokenizer pattern ", file.text("tokenizer.ggml.model"), "/",
                            file.text("tokenizer.ggml.pre")));
  }
  for (const char* key :
       {"tokenizer.ggml.add_bos_token", "tokenizer.ggml.add_eos_token", "tokenizer.ggml.add_space_prefix"}) {
    if (file.has(key) && file.boolean(key)) throw refused(file, cat(key, " is on"));
  }
  const auto& tokens = file.texts("tokenizer.ggml.tokens");
  const auto& types = file.integers("tokenizer.ggml.token_type");
  if (types.size() != tokens.size()) throw refused(file, "as many token types as tokens are needed");

  Json vocab = Json::object(), added = Json::array(), by_id = Json::object();
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (valid_utf8(tokens[i]) != tokens[i]) throw refused(file, cat("token ", i, " is not valid UTF-8"));
    if (types[i] == kUnused) continue;  // A padding row: not in the vocabulary, so never produced.
    if (types[i] != kNormal && types[i] != kControl && types[i] != kUserDefined) {
      throw refused(file, cat("token ", i, " has the unsupported type ", types[i]));
    }
    if (!vocab.emplace(tokens[i], i).second) throw refused(file, cat("token ", i, " comes twice: ", tokens[i]));
    if (types[i] == kNormal) continue;
    Json entry = added_token(tokens[i], types[i] == kControl);
    by_id[cat(i)] = entry;
    entry["id"] = i;
    added.push_back(entry);
  }
  Json merges = Json::array();
  for (const std::string& merge : file.texts("tokenizer.ggml.merges")) {
    if (valid_utf8(merge) != merge) throw refused(file, cat("merge ", merges.size(), " is not valid UTF-8"));
    std::vector<std::string> pair = split(merge, ' ');
    if (pair.size() != 2) throw refused(file, cat("merge ", merges.size(), " is not a pair: ", merge));
    merges.push_back(pair);
  }
  auto byte_level = [](bool add_prefix_space) {
    return Json{
        {"type", "ByteLevel"}, {"add_prefix_space", add_prefix_space}, {"trim_offsets", true}, {"use_regex", true}};
  };
  TokenizerFiles files;
  files.tokenizer = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", added},
      {"normalizer", nullptr},
      {"pre_tokenizer",
       {{"type", "Sequence"},
        {"pretokenizers", {{{"type", "Digits"}, {"individual_digits", true}}, byte_level(false)}}}},
      {"post_processor", nullptr},
      {"decoder", byte_level(true)},
      {"model",
       {{"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token", nullptr},
        {"continuing_subword_prefix", nullptr},
        {"end_of_word_suffix", nullptr},
        {"fuse_unk", false},
        {"byte_fallback", false},
        {"ignore_merges", false},
        {"vocab", vocab},
        {"merges", merges}}},
  };
  files.config = {{"add_prefix_space", false},
                  {"added_tokens_decoder", by_id},
                  {"chat_template", file.text("tokenizer.chat_template")},
                  {"clean_up_tokenization_spaces", false},
                  {"model_max_length", shape.positions},
                  {"tokenizer_class", "GPT2Tokenizer"}};
  auto name_role = [&](const char* role, std::optional<int64_t> id) {
    if (!id) return;
    const std::string& content = tokens[static_cast<size_t>(*id)];
    files.config[role] = content;
    files.special_tokens[role] = added_token(content, true);
    files.special_tokens[role].erase("special");
  };
  name_role("bos_token", special.bos);
  name_role("eos_token", special.eos);
  name_role("unk_token", special.unk);
  name_role("pad_token", special.pad);
  return files;
}

// Whether `folder` is a finished import of the file with this hash. Throws for a folder that holds anything else.
bool is_done(const fs::path& folder, const std::string& hash) {
  if (!fs::exists(folder) || (fs::is_directory(folder) && fs::is_empty(folder))) return false;
  auto other = [&](const std::string& what) {
    return usage_error(what, folder.string(), "choose another folder, or delete this one if it is no longer needed");
  };
  if (!fs::is_directory(folder)) throw other("there is a file where the model folder should go");
  bool whole = true;
  for (const char* name : kFiles) whole = whole && fs::exists(folder / name);
  if (!whole) throw other("the folder is not empty and is no imported model");
  auto metadata = SafetensorsFile::open(folder / "model.safetensors").metadata();
  if (metadata["importer"] != kImporter || metadata["source_hash"] != hash) {
    throw other("the folder holds another model");
  }
  return true;
}

}  // namespace

ImportReport import_gguf(const fs::path& gguf, const fs::path& folder) {
  GgufFile file = GgufFile::open(gguf);
  std::span<const std::byte> bytes = file.bytes();
  std::string hash = content_hash({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  Shape shape = read_shape(file);
  Special special = read_special(file, shape.vocab);
  ImportReport report;
  report.vocabulary = shape.vocab;
  std::vector<TensorToWrite> tensors;
  std::set<std::string> used;
  for (Mapping& mapping : mappings(shape)) {
    const GgufTensor* tensor = file.find(mapping.from);
    if (tensor == nullptr) throw refused(file, cat("tensor \"", mapping.from, "\" is missing"));
    if (tensor->shape != mapping.shape) {
      throw refused(file, cat("tensor \"", mapping.from, "\" has shape ", shape_text(tensor->shape),
                              ", the metadata asks for ", shape_text(mapping.shape)));
    }
    used.insert(mapping.from);
    ++report.tensors;
    report.parameters += static_cast<int64_t>(tensor->elements);
    TensorToWrite to{mapping.to, DType::kBF16, mapping.shape, nullptr, nullptr};
    to.fill = [tensor, mapping](std::span<std::byte> out) { fill_tensor(*tensor, mapping, out); };
    tensors.push_back(std::move(to));
  }
  for (const auto& [name, tensor] : file.tensors()) {
    if (!used.contains(name)) throw refused(file, cat("tensor \"", name, "\" has no place in the model"));
  }
  TokenizerFiles tokenizer = tokenizer_files(file, shape, special);
  fs::path target = (folder / "").parent_path();  // Without a separator at the end.
  if (is_done(target, hash)) {
    report.already_there = true;
    return report;
  }

  fs::path partial = target;
  partial += ".partial";  // Left by an import that was killed; made anew.
  std::error_code error;
  fs::remove_all(partial, error);
  fs::create_directories(partial, error);
  if (error) throw environment_error(cat("cannot create the folder: ", error.message()), partial.string());
  try {
    auto put = [&](const char* name, const Json& json) { write_file(partial / name, json.dump(2) + "\n"); };
    write_safetensors(partial / "model.safetensors", tensors,
                      {{"format", "pt"},
                       {"importer", kImporter},
                       {"license", file.has("general.license") ? file.text("general.license") : "unknown"},
                       {"source", gguf.filename().string()},
                       {"source_hash", hash}});
    put("config.json", model_config(shape, special));
    put("generation_config.json", generation_config(special));
    put("tokenizer.json", tokenizer.tokenizer);
    put("tokenizer_config.json", tokenizer.config);
    put("special_tokens_map.json", tokenizer.special_tokens);
    fs::remove(target, error);  // An empty folder, if any: is_done has made sure.
    fs::rename(partial, target);
  } catch (const fs::filesystem_error& failure) {
    fs::remove_all(partial, error);
    throw environment_error(cat("cannot move the model into place: ", failure.code().message()), target.string());
  } catch (const Error&) {
    fs::remove_all(partial, error);
    throw;
  }
  return report;
}

}  // namespace tritonrl
