// SPDX-License-Identifier: Apache-2.0
// Compiling without a GPU, and what the cache does with files that are not its own.
#include "base/process/nvrtc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files/json.h"
#include "base/text.h"

namespace tritonrl::nvrtc_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

const CudaProgram kScale = {"scale.cu",
                            "namespace t { template <class T> __global__ void scale(T* x, T by) {\n"
                            "  x[threadIdx.x] *= by;\n} }\n",
                            {"t::scale<float>", "t::scale<double>"},
                            {}};

class Nvrtc : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_nvrtc()) GTEST_SKIP() << "libnvrtc is not here; tools/setup.sh brings it with torch";
    fs::remove_all(cache_);
  }
  void TearDown() override { fs::remove_all(cache_); }
  // The one file of the cache.
  fs::path file() {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(cache_)) found.push_back(entry.path());
    EXPECT_EQ(found.size(), 1u);
    return found.empty() ? "" : found[0];
  }
  std::string error_of(const CudaProgram& program, int capability) {
    try {
      compile_cuda(program, capability, cache_);
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), 3);
      return error.what();
    }
    return "no error";
  }
  fs::path cache_ = fs::path(testing::TempDir()) / cat("nvrtc_", ::getpid());
};

TEST_F(Nvrtc, CompilesForAnyArchitecture) {
  for (int capability : {80, 90, 100}) {
    Cubin cubin = compile_cuda(kScale, capability, "");
    EXPECT_THAT(cubin.image, StartsWith("\x7f"
                                        "ELF"));
    ASSERT_EQ(cubin.symbols.size(), 2u);
    for (const auto& [kernel, symbol] : cubin.symbols) EXPECT_THAT(cubin.image, HasSubstr(symbol)) << kernel;
    EXPECT_NE(cubin.symbols.at("t::scale<float>"), cubin.symbols.at("t::scale<double>"));
  }
}

TEST_F(Nvrtc, ReadsWhatItKept) {
  Cubin made = compile_cuda(kScale, 90, cache_);
  fs::path kept = file();
  auto written = fs::last_write_time(kept);
  Cubin again = compile_cuda(kScale, 90, cache_);
  EXPECT_EQ(again.image, made.image);
  EXPECT_EQ(again.symbols, made.symbols);
  EXPECT_EQ(fs::last_write_time(kept), written);
  CudaProgram other = kScale;
  other.options = {"--fmad=false"};
  compile_cuda(other, 90, cache_);
  EXPECT_EQ(std::distance(fs::directory_iterator(cache_), {}), 2) << "other options are another file";
}

TEST_F(Nvrtc, MakesADamagedFileAgain) {
  Cubin made = compile_cuda(kScale, 90, cache_);
  fs::path kept = file();
  std::string whole = read_file(kept), flipped = whole;
  flipped[whole.size() / 2] ^= 1;
  for (const std::string& bad : {std::string(), whole.substr(0, 40), whole.substr(0, whole.size() - 1), flipped,
                                 std::string(500, 'x'), whole + "x"}) {
    write_file(kept, bad);
    EXPECT_EQ(compile_cuda(kScale, 90, cache_).image, made.image);
    EXPECT_EQ(read_file(kept), whole);
  }
  fs::remove(kept);
  fs::create_directory(kept);  // In its place something that is no file.
  EXPECT_EQ(compile_cuda(kScale, 90, cache_).image, made.image);
}

TEST_F(Nvrtc, DoesWithoutACacheThatCannotBeWritten) {
  write_file(cache_, "no folder");
  EXPECT_THAT(compile_cuda(kScale, 90, cache_).image, StartsWith("\x7f"));
}

TEST_F(Nvrtc, SaysWhatIsWrong) {
  CudaProgram bad = kScale;
  bad.source = "__global__ void f() { nothing_such(); }";
  bad.kernels = {"f"};
  EXPECT_THAT(error_of(bad, 90), testing::AllOf(HasSubstr("scale.cu"), HasSubstr("nothing_such")));
  bad.source = "__global__ void g() {}";
  EXPECT_THAT(error_of(bad, 90), HasSubstr("scale.cu"));
  EXPECT_THAT(error_of(kScale, 9999), HasSubstr("sm_9999"));
  EXPECT_FALSE(fs::exists(cache_)) << "what failed is not kept";
}

}  // namespace
}  // namespace tritonrl::nvrtc_test
