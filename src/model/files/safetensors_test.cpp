// SPDX-License-Identifier: Apache-2.0
// Safetensors: round trips, and every way in which a file or a folder of shards can be broken.
#include "model/files/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <optional>

#include "base/error.h"
#include "base/files/json.h"
#include "base/text.h"

namespace tritonrl::safetensors_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class SafetensorsTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / cat("safetensors_", ::getpid());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // A file with this header and so many bytes of data.
  fs::path raw(const std::string& header, size_t data_bytes, std::optional<uint64_t> length = {}) {
    uint64_t n = length.value_or(header.size());
    std::string bytes(reinterpret_cast<const char*>(&n), sizeof n);
    fs::path path = folder_ / "raw.safetensors";
    write_file(path, bytes + header + std::string(data_bytes, '\1'));
    return path;
  }
  std::string error_of(const fs::path& path) {
    try {
      SafetensorsFile::open(path);
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), 2);
      EXPECT_EQ(error.where(), path.string());
      EXPECT_FALSE(error.hint().empty());
      return error.message();
    }
    return "no error";
  }
  std::string folder_error() {
    try {
      ModelFiles::open(folder_);
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), 2);
      return error.what();
    }
    return "no error";
  }
  // Two shards with a and b, and their index.
  void write_shards() {
    float a[2] = {1, 2}, b[1] = {3};
    write_safetensors(folder_ / "model-00001-of-00002.safetensors", {{"a", DType::kF32, {2}, a}});
    write_safetensors(folder_ / "model-00002-of-00002.safetensors", {{"b", DType::kF32, {1}, b}});
    write_index({{"a", "model-00001-of-00002.safetensors"}, {"b", "model-00002-of-00002.safetensors"}});
  }
  void write_index(const Json& weight_map) {
    write_file(folder_ / "model.safetensors.index.json",
               Json{{"metadata", Json::object()}, {"weight_map", weight_map}}.dump());
  }

  fs::path folder_;
};

TEST_F(SafetensorsTest, WritesWhatItReads) {
  uint8_t flags[3] = {1, 0, 1};
  double wide[2] = {0.5, -2};
  fs::path path = folder_ / "model.safetensors";
  write_safetensors(path, {{"flags", DType::kBool, {3}, flags},
                           {"empty", DType::kF16, {0, 4}, nullptr},
                           {"scalar",
                            DType::kI16,
                            {},
                            nullptr,
                            [](std::span<std::byte> out) {
                              ASSERT_EQ(out.size(), 2u);
                              out[0] = std::byte{7}, out[1] = std::byte{1};
                            }},
                           {"wide", DType::kF64, {2, 1}, wide}});
  SafetensorsFile file = SafetensorsFile::open(path);
  EXPECT_THAT(file.names(), ElementsAre("empty", "flags", "scalar", "wide"));
  EXPECT_EQ(file.metadata().at("format"), "pt");
  const TensorView* view = file.find("wide");
  ASSERT_NE(view, nullptr);
  EXPECT_EQ(view->dtype, DType::kF64);
  EXPECT_THAT(view->shape, ElementsAre(2, 1));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(view->data) % 8, 0u) << "wide types come first, so that they are aligned";
  EXPECT_EQ(load_le<double>(view->data + 8), -2);
  EXPECT_EQ(load_le<int16_t>(file.find("scalar")->data), 263);
  EXPECT_EQ(file.find("empty")->bytes, 0u);
  EXPECT_EQ(load_le<uint8_t>(file.find("flags")->data + 2), 1);
  EXPECT_EQ(file.find("Wide"), nullptr);
}

TEST_F(SafetensorsTest, SurvivesBeingMoved) {
  write_shards();
  ModelFiles first = ModelFiles::open(folder_);
  ModelFiles second = std::move(first);
  EXPECT_EQ(load_le<float>(second.require("b", {1}).data), 3);
}

TEST_F(SafetensorsTest, LeavesTheOldFileWhenWritingFails) {
  float a[1] = {1};
  fs::path path = folder_ / "model.safetensors";
  write_safetensors(path, {{"a", DType::kF32, {1}, a}});
  auto fail = [](std::span<std::byte>) { throw environment_error("disk full"); };
  EXPECT_THROW(write_safetensors(path, {{"a", DType::kF32, {9}, nullptr, fail}}), Error);
  EXPECT_EQ(SafetensorsFile::open(path).find("a")->bytes, 4u);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1) << "a temporary file is left";
}

TEST_F(SafetensorsTest, AFolderThatIsMissingIsAnEnvironmentError) {
  try {
    write_safetensors(folder_ / "missing" / "model.safetensors", {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 3);
  }
}

TEST_F(SafetensorsTest, RefusesTruncation) {
  float a[100] = {};
  fs::path path = folder_ / "model.safetensors";
  write_safetensors(path, {{"a", DType::kF32, {60}, a}, {"b", DType::kF32, {40}, a}});
  std::string whole = read_file(path);
  for (size_t size = 0; size < whole.size(); size += size < 200 ? 1 : 13) {
    fs::remove(path);  // Truncating an old file makes some file systems flush.
    std::ofstream(path, std::ios::binary) << whole.substr(0, size);
    EXPECT_NE(error_of(path), "no error") << size << " bytes of " << whole.size();
  }
  write_file(path, std::string_view(whole).substr(0, whole.size() - 1));
  EXPECT_THAT(error_of(path), HasSubstr("tensor \"b\": its bytes [240, 400) lie outside the 399 bytes of data"));
  write_file(path, whole + "x");
  EXPECT_THAT(error_of(path), HasSubstr("1 bytes after the last tensor"));
}

TEST_F(SafetensorsTest, RefusesBadHeaders) {
  EXPECT_THAT(error_of(folder_ / "missing"), HasSubstr("no such file"));
  EXPECT_THAT(error_of(folder_), HasSubstr("not a regular file"));
  EXPECT_THAT(error_of(raw("{}", 0, 3)), HasSubstr("the header should take 3 bytes, the file has 2"));
  EXPECT_THAT(error_of(raw("{}", 0, ~uint64_t{0})), HasSubstr("the header should take"));
  EXPECT_THAT(error_of(raw("[]", 0)), HasSubstr("not a JSON object"));
  EXPECT_THAT(error_of(raw("{\"a\"", 0)), HasSubstr("not a JSON object"));
  EXPECT_THAT(error_of(raw("\xff\xfe", 0)), HasSubstr("not a JSON object"));
  EXPECT_THAT(error_of(raw(R"({"__metadata__": {"a": 1}})", 0)), HasSubstr("a value that is no text"));
  EXPECT_EQ(error_of(raw("{}", 0)), "no error");
}

TEST_F(SafetensorsTest, RefusesBadTensors) {
  auto entry = [&](const std::string& body, size_t bytes) { return error_of(raw(cat("{\"a\": ", body, "}"), bytes)); };
  EXPECT_EQ(entry(R"({"dtype": "F32", "shape": [2], "data_offsets": [0, 8]})", 8), "no error");
  EXPECT_THAT(entry(R"({"dtype": "F31", "shape": [2], "data_offsets": [0, 8]})", 8),
              HasSubstr("tensor \"a\": unknown dtype \"F31\""));
  EXPECT_THAT(entry(R"({"dtype": 1, "shape": [2], "data_offsets": [0, 8]})", 8), HasSubstr("unknown dtype 1"));
  EXPECT_THAT(entry(R"({"dtype": "F32", "shape": [3], "data_offsets": [0, 8]})", 8),
              HasSubstr("F32 [3] does not take 8 bytes"));
  EXPECT_THAT(entry(R"({"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]})", 8), HasSubstr("not a list of sizes"));
  EXPECT_THAT(entry(R"({"dtype": "F32", "shape": 2, "data_offsets": [0, 8]})", 8), HasSubstr("not a list of sizes"));
  EXPECT_THAT(entry(R"({"dtype": "F32", "shape": [4611686018427387904, 4], "data_offsets": [0, 0]})", 0),
              HasSubstr("does not take 0"));
  EXPECT_THAT(entry(R"({"dtype": "F32", "shape": [18446744073709551615], "data_offsets": [0, 8]})", 8),
              HasSubstr("beyond 2^63"));
  EXPECT_THAT(entry(R"({"dtype": "F32", "shape": [2], "data_offsets": [8, 0]})", 8), HasSubstr("lie outside"));
  EXPECT_THAT(entry(R"({"dtype": "F32", "shape": [2], "data_offsets": [8, 16]})", 8), HasSubstr("lie outside"));
  EXPECT_THAT(entry(R"({"dtype": "F32", "shape": [2], "data_offsets": [4, 12]})", 12),
              HasSubstr("a hole of 4 bytes before it"));
  EXPECT_THAT(entry(R"({"dtype": "F32", "shape": [2], "data_offsets": [0]})", 8), HasSubstr("not [begin, end]"));
  EXPECT_THAT(entry(R"({"dtype": "F32", "shape": [2]})", 8), HasSubstr("exactly dtype, shape and data_offsets"));
  EXPECT_THAT(entry("7", 8), HasSubstr("not an object"));
  std::string two = R"({"a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]},
                        "b": {"dtype": "U8", "shape": [4], "data_offsets": [3, 7]}})";
  EXPECT_THAT(error_of(raw(two, 7)), HasSubstr("tensor \"b\": its bytes overlap another tensor's at offset 3"));
}

TEST_F(SafetensorsTest, JoinsShards) {
  write_shards();
  ModelFiles files = ModelFiles::open(folder_);
  EXPECT_THAT(files.names(), ElementsAre("a", "b"));
  EXPECT_EQ(files.find("a")->bytes + files.find("b")->bytes, 12u);
  EXPECT_EQ(load_le<float>(files.require("a", {2}).data + 4), 2);
  try {
    files.require("a", {2, 1});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("tensor \"a\" has shape [2], config.json asks for [2, 1]"));
  }
  EXPECT_THROW(files.require("c", {1}), Error);
}

TEST_F(SafetensorsTest, RefusesBrokenFolders) {
  EXPECT_THAT(folder_error(), HasSubstr("no model.safetensors"));
  write_shards();
  fs::remove(folder_ / "model-00002-of-00002.safetensors");
  EXPECT_THAT(folder_error(), HasSubstr("shard model-00002-of-00002.safetensors is missing"));
  write_shards();
  write_index({{"a", "model-00001-of-00002.safetensors"}, {"b", "model-00001-of-00002.safetensors"}});
  EXPECT_THAT(folder_error(), HasSubstr("\"b\": the index says it is here"));
  write_index({{"a", "model-00002-of-00002.safetensors"}, {"b", "model-00002-of-00002.safetensors"}});
  EXPECT_THAT(folder_error(), HasSubstr("\"a\""));
  write_index({{"a", "model-00001-of-00002.safetensors"}});
  EXPECT_EQ(folder_error(), "no error");
  write_index({{"a", "../model-00001-of-00002.safetensors"}});
  EXPECT_THAT(folder_error(), HasSubstr("not a file name"));
  write_index(Json::array());
  EXPECT_THAT(folder_error(), HasSubstr("no weight_map"));
  write_file(folder_ / "model.safetensors.index.json", "{");
  EXPECT_THAT(folder_error(), HasSubstr("model.safetensors.index.json"));
}

}  // namespace
}  // namespace tritonrl::safetensors_test
