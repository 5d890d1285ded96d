// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <set>

#include "base/check.h"
#include "base/error.h"
#include "base/files/json.h"
#include "base/files/run_dir.h"
#include "base/files/secure_hash.h"
#include "base/log.h"
#include "base/process/interrupt.h"
#include "base/process/memory.h"
#include "base/rng.h"
#include "base/stats.h"
#include "base/text.h"

namespace tritonrl::base_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string fresh_folder(const std::string& name) {
  std::string path = testing::TempDir() + "/base_" + name;
  fs::remove_all(path);
  fs::create_directories(path);
  return path;
}

TEST(Progress, TimeLeftIsNotGuessed) {
  EXPECT_EQ(time_left(2, 10, 60), "");
  EXPECT_EQ(time_left(100, 1000, 4.9), "");
  EXPECT_EQ(time_left(3, 12, 30), human_seconds(90) + " left");
  EXPECT_EQ(time_left(12, 10, 30), human_seconds(0) + " left");
}

// Known answers of the reference implementation (Random123's kat_vectors, philox4x32-10).
TEST(Rng, PhiloxKnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  uint32_t f = 0xffffffff;
  EXPECT_EQ(philox({f, f, f, f}, {f, f}), (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Rng, StreamsAreIndependentOfWhatWasDrawn) {
  Rng a(5), b(5);
  b.next_u64();
  EXPECT_EQ(a.at(3).next_u64(), b.at(3).next_u64());
  EXPECT_NE(a.at(3).next_u64(), a.at(4).next_u64());
  EXPECT_NE(a.at("x").next_u64(), a.at("y").next_u64());
  Rng moved(9);
  moved.next_u64();
  Rng restored = Rng::restore(moved.key(), moved.counter());
  EXPECT_EQ(restored.next_u64(), moved.next_u64());
}

TEST(Rng, MomentsAreRight) {
  Rng rng(1);
  double uniform = 0, normal = 0, square = 0;
  constexpr int kDraws = 50000;
  std::set<int64_t> seen;
  for (int i = 0; i < kDraws; ++i) {
    uniform += rng.uniform();
    double n = rng.normal();
    normal += n;
    square += n * n;
    seen.insert(rng.below(7));
  }
  EXPECT_NEAR(uniform / kDraws, 0.5, 0.01);
  EXPECT_NEAR(normal / kDraws, 0, 0.02);
  EXPECT_NEAR(square / kDraws, 1, 0.03);
  EXPECT_EQ(seen, (std::set<int64_t>{0, 1, 2, 3, 4, 5, 6}));
}

TEST(Stats, WilsonAgainstPublishedValues) {
  Interval i = wilson(15, 24);  // 0.625; interval by the score equation.
  EXPECT_NEAR(i.low, 0.4271, 5e-4);
  EXPECT_NEAR(i.high, 0.7884, 5e-4);
  EXPECT_EQ(wilson(0, 10).low, 0);
  EXPECT_NEAR(wilson(0, 10).high, 0.2775, 5e-4);
  EXPECT_EQ(wilson(10, 10).high, 1);
  EXPECT_EQ(wilson(0, 0).high, 1);
}

TEST(Stats, PassAtKByCounting) {
  EXPECT_DOUBLE_EQ(pass_at_k(4, 0, 2), 0);
  EXPECT_DOUBLE_EQ(pass_at_k(4, 1, 1), 0.25);
  EXPECT_DOUBLE_EQ(pass_at_k(4, 2, 2), 1 - 1.0 / 6);  // One of the six pairs has no correct one.
  EXPECT_DOUBLE_EQ(pass_at_k(4, 3, 2), 1);
}

TEST(Stats, PercentilesAndSpread) {
  EXPECT_DOUBLE_EQ(percentile({4, 1, 3, 2}, 50), 2.5);
  EXPECT_DOUBLE_EQ(percentile({1, 2, 3}, 100), 3);
  EXPECT_DOUBLE_EQ(stddev({1, 3}), std::sqrt(2.0));
  EXPECT_EQ(mean({}), 0);
}

TEST(Text, NearestWord) {
  EXPECT_EQ(nearest("temprature", {"temperature", "top_k"}), "temperature");
  EXPECT_EQ(nearest("zzzzzz", {"temperature", "top_k"}), "");
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
}

TEST(Text, InvalidUtf8IsReplaced) {
  EXPECT_EQ(valid_utf8("a\xff"
                       "b"),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(valid_utf8("\xc3\xa9"), "\xc3\xa9");
  EXPECT_EQ(valid_utf8("\xed\xa0\x80").size(), 9u);  // A surrogate is three bad bytes.
}

TEST(Text, PrintableShowsWhatItIs) {
  EXPECT_EQ(printable(std::string("nul\0esc\x1b[2J\x7f", 12)), "nul[U+0000]esc[U+001B][2J[U+007F]");
  EXPECT_EQ(printable("\xC2\x9B"
                      "2J"),
            "[U+009B]2J");  // ESC [ in one character.
  EXPECT_EQ(printable("a\xE2\x80\xAE"
                      "b"),
            "a[U+202E]b");                                                   // Right-to-left override.
  EXPECT_EQ(printable("x\xE2\x81\xA6y\xE2\x81\xA9"), "x[U+2066]y[U+2069]");  // Isolates.
  EXPECT_EQ(printable("a\xE2\x80\x8B"
                      "b"),
            "a[U+200B]b");                                // Zero-width space.
  EXPECT_EQ(printable("\xF3\xA0\x81\x81"), "[U+E0041]");  // A tag: an A that nobody sees.
  EXPECT_EQ(printable("\xEF\xBF\xBF\xF0\x9F\xBF\xBE"), "[U+FFFF][U+1FFFE]");
  EXPECT_EQ(printable("gr\xC3\xBC\xC3\x9F \xE6\xBC\xA2 \xF0\x9F\x98\x80"),
            "gr\xC3\xBC\xC3\x9F \xE6\xBC\xA2 \xF0\x9F\x98\x80");
  EXPECT_EQ(printable("one\r\ntwo\rthree\tfour"), "one\ntwo[U+000D]three\tfour");
  EXPECT_EQ(printable("\xff"), "\xEF\xBF\xBD");
}

TEST(Text, Helpers) {
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(trim("  x \n"), "x");
  EXPECT_EQ(replace_all("aXbX", "X", "yy"), "ayybyy");
  EXPECT_EQ(human_seconds(125), "2 m 05 s");
  EXPECT_EQ(human_bytes(1536), "1.5 KiB");
  EXPECT_EQ(content_hash("a").size(), 32u);
  EXPECT_NE(content_hash("a"), content_hash("b"));
}

TEST(Memory, GrowsWithWhatIsWritten) {
  int64_t before = resident_bytes();
  ASSERT_GT(before, 0);
  std::vector<char> block(64 << 20, 1);
  EXPECT_GE(resident_bytes(), before + (48 << 20));
  EXPECT_EQ(block[block.size() / 2], 1);
}

// The examples of FIPS 180-2 and the empty text.
TEST(SecureHash, IsSha256) {
  EXPECT_EQ(secure_hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(secure_hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(secure_hash(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_EQ(secure_hash(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_NE(secure_hash(std::string_view("a\0b", 3)), secure_hash("a"));
}

TEST(Check, EndsTheProcessWithCode70) {
  EXPECT_EXIT(CHECK(1 + 1 == 3) << "sum " << 2, testing::ExitedWithCode(kExitOurBug), "1 \\+ 1 == 3.*sum 2");
}

// A step that does not end in time.
TEST(Interrupts, ASigtermEndsTheProcessAfterTwentySecondsAtTheLatest) {
  double start = now_s();
  auto hang = [] {
    handle_interrupts();
    ::raise(SIGTERM);
    while (true) ::pause();
  };
  EXPECT_EXIT(hang(), testing::ExitedWithCode(130), "leaving in the middle");
  EXPECT_GT(now_s() - start, 15);
  EXPECT_LT(now_s() - start, 30);
}

TEST(Error, SaysWhatWhereAndWhatToDo) {
  Error e = usage_error("key is unknown", "a.yaml:3", "did you mean 'lr'?");
  EXPECT_STREQ(e.what(), "a.yaml:3: key is unknown\n  hint: did you mean 'lr'?");
  EXPECT_EQ(e.exit_code(), 2);
  EXPECT_EQ(environment_error("no disk").exit_code(), 3);
}

TEST(Json, LinesNameTheBadOne) {
  std::string file = fresh_folder("lines") + "/x.jsonl";
  write_file(file, "{\"a\": 1}\n\nnot json\n");
  try {
    for_each_json_line(file, [](int64_t, const Json&) {});
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("x.jsonl:3"));
  }
}

TEST(Json, AFolderHasNoLines) {  // It must not pass for an empty file.
  try {
    for_each_json_line(fresh_folder("lines"), [](int64_t, const Json&) {});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.exit_code(), 2);
    EXPECT_THAT(e.what(), HasSubstr("is a folder"));
  }
}

// A disk that is full: the file-size limit makes write(2) fail the same way, half-way through.
TEST(Json, AFailedWriteLeavesTheOldFile) {
  std::string file = fresh_folder("full") + "/x.json";
  write_file(file, "old");
  struct rlimit before = {};
  ::getrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, SIG_IGN);
  struct rlimit small = {4096, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_THROW(write_file(file, std::string(100000, 'x')), Error);
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(read_file(file), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(fs::path(file).parent_path()), fs::directory_iterator()), 1);
}

TEST(RunDir, GoesOnBehindTheLastFinishedPhase) {
  std::string folder = fresh_folder("run") + "/r";
  {
    RunDir run = RunDir::open(folder, "a: 1\n", false);
    run.steps().write({{"phase", "sft"}, {"step", 1}, {"time", 5}});
    run.steps().write({{"phase", "rl"}, {"unit", "rl/step_1"}, {"step", 1}});
    run.mark_done("sft", {{"loss", 0.5}});
    write_file(folder + "/rollouts/step_1.jsonl.tmp4711", "{\"hal");  // It was killed while writing this.
    write_file(folder + "/rollouts/step_1.tmpl", "");
  }
  RunDir again = RunDir::open(folder, "a: 1\n", false);
  EXPECT_TRUE(again.phase_done("sft"));
  EXPECT_EQ(again.phase_data("sft")["loss"], 0.5);
  EXPECT_FALSE(again.phase_done("rl/step_1"));
  EXPECT_EQ(read_file(folder + "/steps.jsonl"),
            "{\"phase\":\"sft\",\"step\":1,\"time\":5}\n");  // The unfinished phase's line is gone.
  EXPECT_FALSE(fs::exists(folder + "/rollouts/step_1.jsonl.tmp4711"));
  EXPECT_TRUE(fs::exists(folder + "/rollouts/step_1.tmpl"));
}

TEST(RunDir, RefusesAnotherConfigAndForeignFolders) {
  std::string folder = fresh_folder("other") + "/r";
  RunDir::open(folder, "a: 1\n", false);
  EXPECT_THROW(RunDir::open(folder, "a: 2\n", false), Error);
  EXPECT_EQ(read_file(folder + "/config.yaml"), "a: 1\n");
  RunDir::open(folder, "a: 2\n", true);
  EXPECT_EQ(read_file(folder + "/config.yaml"), "a: 2\n");
  std::string foreign = fresh_folder("foreign");
  write_file(foreign + "/thesis.txt", "precious");
  EXPECT_THROW(RunDir::open(foreign, "a: 1\n", true), Error);
  EXPECT_EQ(read_file(foreign + "/thesis.txt"), "precious");
}

TEST(Stats, StudentsQuantiles) {  // Against the printed tables.
  EXPECT_NEAR(student_t_quantile(0.975, 1), 12.7062, 1e-4);
  EXPECT_NEAR(student_t_quantile(0.975, 2), 4.30265, 1e-5);
  EXPECT_NEAR(student_t_quantile(0.975, 3), 3.18245, 2e-5);
  EXPECT_NEAR(student_t_quantile(0.99, 5), 3.36493, 2e-5);
  EXPECT_NEAR(student_t_quantile(0.975, 10), 2.22814, 2e-5);
  EXPECT_NEAR(student_t_quantile(0.995, 30), 2.75000, 2e-5);
  EXPECT_NEAR(student_t_quantile(0.975, 100000), 1.95999, 2e-5);
  EXPECT_EQ(student_t_quantile(0.5, 7), 0);
}

}  // namespace
}  // namespace tritonrl::base_test
