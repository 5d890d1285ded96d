// SPDX-License-Identifier: Apache-2.0
// Blobs: framing, nonce, failures, tensor references; bytes that do not fit are refused and never crash.
#include "verify/sandbox/blob.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/rng.h"

namespace tritonrl::blob_test {
namespace {

std::string framed(const std::string& header, const std::string& area = "") {
  auto length = static_cast<uint32_t>(header.size());
  std::string out(4, '\0');
  std::memcpy(out.data(), &length, 4);
  return out + header + area;
}
std::string why(const std::string& bytes) { return parse_blob(bytes, "abc").why; }

TEST(Blob, ParsesResultsAndFailures) {
  auto good = parse_blob(framed(R"({"nonce": "abc", "ok": true, "x": 1})", "12345678"), "abc");
  ASSERT_TRUE(good) << good.why;
  EXPECT_EQ(good.value->header["x"], 1);
  EXPECT_EQ(good.value->tensors(), "12345678");
  EXPECT_FALSE(good.value->failure);
  auto bad = parse_blob(framed(R"({"nonce": "abc", "ok": false, "failure":
      {"rule": "kernel_name", "phase": "compile", "message": "no", "kernel": "k", "line": 7}})"),
                        "abc");
  ASSERT_TRUE(bad) << bad.why;
  EXPECT_EQ(human_text(*bad.value->failure), "kernel k, line 7: no");
}

TEST(Blob, RefusesWhatIsNotOne) {
  EXPECT_NE(why(""), "");
  EXPECT_NE(why("abc"), "");
  EXPECT_NE(why(std::string(100, '\xff')), "");
  EXPECT_NE(why(framed("{")), "");
  EXPECT_NE(why(framed("[1, 2]")), "");
  std::string half = framed(R"({"nonce": "abc", "ok": true})");
  EXPECT_NE(why(half.substr(0, half.size() - 3)), "");
  EXPECT_NE(why(framed(R"({"nonce": "abd", "ok": true})")).find("mark"), std::string::npos);
  EXPECT_NE(why(framed(R"({"ok": true})")).find("mark"), std::string::npos);
  EXPECT_NE(why(framed(R"({"nonce": "abc"})")), "");
  EXPECT_NE(why(framed(R"({"nonce": "abc", "ok": "yes"})")), "");
  EXPECT_NE(why(framed(R"({"nonce": "abc", "ok": false})")), "");
  // A child may not call itself passed, or blame us, or say what only the verifier can know.
  for (const char* rule : {"pass", "verifier_failed", "forged_result", "elements", "not_finite", "no_such_rule", ""}) {
    Json header = {{"nonce", "abc"}, {"ok", false}, {"failure", {{"rule", rule}, {"phase", "init"}, {"message", ""}}}};
    EXPECT_NE(why(framed(header.dump())), "") << rule;
  }
  EXPECT_NE(why(framed(std::string(1000000, '['))).find("deep"), std::string::npos);
}

TEST(Blob, TensorReferences) {
  std::string area(64, 'x');
  auto view = [&](const char* json) { return tensor_from(Json::parse(json), area); };
  EXPECT_EQ(view(R"({"shape": [2, 3], "dtype": "float32", "offset": 8, "nbytes": 24})").numel(), 6);
  EXPECT_EQ(view(R"({"shape": [], "dtype": "int64", "offset": 56, "nbytes": 8, "stride": []})").numel(), 1);
  for (const char* json : {R"({"shape": [2, 3], "dtype": "float32", "offset": 48, "nbytes": 24})",
                           R"({"shape": [2, 3], "dtype": "float32", "offset": 0, "nbytes": 20})",
                           R"({"shape": [2, -3], "dtype": "float32", "offset": 0, "nbytes": 24})",
                           R"({"shape": [2, 3], "dtype": "complex64", "offset": 0, "nbytes": 24})",
                           R"({"shape": [2, 3], "dtype": "float32", "offset": -8, "nbytes": 24})",
                           R"({"shape": [2, 3], "dtype": "float32", "offset": 18446744073709551608, "nbytes": 24})",
                           R"({"shape": [4294967296, 4294967296], "dtype": "float32", "offset": 0, "nbytes": 0})",
                           R"({"shape": [2, 3], "dtype": "float32", "offset": 0, "nbytes": 24, "data": 1})",
                           R"({"shape": [2, 3], "dtype": "float32", "offset": 0, "nbytes": 24, "stride": [1]})",
                           R"({"shape": [1.5], "dtype": "float32", "offset": 0, "nbytes": 4})", R"([])", R"({})"}) {
    EXPECT_THROW(view(json), Tainted) << json;
  }
}

TEST(Blob, PayloadRoundTrip) {
  std::string three = "123", six = "abcdef";
  PayloadWriter writer;
  Json first = writer.add({Dtype::kUint8, {3}, three}), second = writer.add({Dtype::kFloat16, {3}, six});
  std::string payload = writer.take();
  EXPECT_EQ(tensor_from(first, payload).bytes, three);
  EXPECT_EQ(tensor_from(second, payload).bytes, six);
  EXPECT_EQ(second["offset"].get<int>() % 16, 0);
}

TEST(Blob, SurvivesRandomDamage) {
  std::string text = framed(
      R"({"nonce": "abc", "ok": true, "t": {"shape": [2], "dtype": "float32", "offset": 0, "nbytes": 8}})", "12345678");
  Rng rng(3);
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = text;
    for (int k = 0; k < 2; ++k)
      damaged[rng.below(static_cast<int64_t>(damaged.size()))] = static_cast<char>(rng.below(256));
    auto blob = parse_blob(damaged, "abc");
    if (!blob || !blob.value->header.contains("t")) continue;
    try {
      BlobView tensor = tensor_from(blob.value->header["t"], blob.value->tensors());
      EXPECT_EQ(static_cast<int64_t>(tensor.bytes.size()), tensor.numel() * item_size(tensor.dtype));
    } catch (const Tainted&) {
    }
  }
}

}  // namespace
}  // namespace tritonrl::blob_test
