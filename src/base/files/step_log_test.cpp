// SPDX-License-Identifier: Apache-2.0
#include "base/files/step_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/files/run_dir.h"
#include "base/files/tensorboard.h"

namespace tritonrl::step_log_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

// RFC 3720, appendix B.4, and the usual check value.
TEST(Crc32c, KnownAnswers) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62A8AB43u);
  std::string rising;
  for (char c = 0; c < 32; ++c) rising += c;
  EXPECT_EQ(crc32c(rising), 0x46DD794Eu);
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(TensorBoard, MessagesAreProtobufsByTheByte) {
  // wall_time = 1.0; step = 300; summary { value { tag: "a" simple_value: 0.5 } }
  const char expected[] =
      "\x09\0\0\0\0\0\0\xf0\x3f"
      "\x10\xac\x02"
      "\x2a\x0a\x0a\x08\x0a\x01"
      "a"
      "\x15\0\0\0\x3f";
  EXPECT_EQ(scalars_event(1.0, 300, {{"a", 0.5}}), std::string(expected, sizeof expected - 1));
  EXPECT_EQ(version_event(0).substr(11),
            "\x1a\x0d"
            "brain.Event:2");
  EXPECT_EQ(restart_event(0, 0).substr(11), "\x3a\x02\x08\x01");
}

TEST(TensorBoard, RecordsCarryMaskedSumsOfLengthAndData) {
  std::string record = tf_record("123456789");
  ASSERT_EQ(record.size(), 8u + 4 + 9 + 4);
  uint32_t sum = 0;
  std::memcpy(&sum, record.data() + 21, 4);
  EXPECT_EQ(sum, 0xC78AB0E5u);  // rotr(E3069283, 15) + A282EAD8.
  EXPECT_EQ(record.substr(0, 8), std::string("\x09\0\0\0\0\0\0\0", 8));
}

struct Point {
  std::string tag;
  int64_t step;
  float value;
  bool operator==(const Point&) const = default;
};

uint64_t varint(const std::string& bytes, size_t* at) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    auto byte = static_cast<unsigned char>(bytes.at((*at)++));
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
}

// All scalars of the one event file of a run; checks the sums of every record.
std::vector<Point> points_of(const fs::path& run) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(run / "tensorboard")) files.push_back(entry.path());
  EXPECT_EQ(files.size(), 1u);
  EXPECT_THAT(files.at(0).filename().string(), testing::StartsWith("events.out.tfevents."));
  std::string bytes = read_file(files.at(0));
  std::vector<Point> points;
  for (size_t at = 0; at < bytes.size();) {
    uint64_t length = 0;
    std::memcpy(&length, bytes.data() + at, 8);
    std::string data = bytes.substr(at + 12, length);
    EXPECT_EQ(bytes.substr(at, length + 16), tf_record(data));
    at += length + 16;
    size_t p = 10;  // Behind wall_time and the key of step.
    auto step = static_cast<int64_t>(varint(data, &p));
    if (data.at(p) != 0x2a) continue;  // No summary.
    ++p;
    for (varint(data, &p); p < data.size();) {
      ++p, varint(data, &p), ++p;  // The value's key and length, its tag's key.
      size_t tag_length = varint(data, &p);
      Point point{data.substr(p, tag_length), step, 0};
      p += tag_length + 1;
      std::memcpy(&point.value, data.data() + p, 4);
      p += 4;
      points.push_back(point);
    }
  }
  return points;
}

TEST(StepLog, WritesTheSameNumbersTwiceAndDropsWhatIsDroppedInBoth) {
  fs::path run = fs::path(testing::TempDir()) / "step_log_test";
  fs::remove_all(run);
  auto reopened = [&] { return RunDir::open(run, "a: 1\n", false); };
  {
    RunDir dir = reopened();
    dir.steps().write({{"phase", "sft"}, {"unit", "sft"}, {"step", 1}, {"loss", 0.5}, {"note", "text"}});
    dir.steps().write({{"phase", "sft"}, {"unit", "sft"}, {"step", 2}, {"loss", nullptr}});
    dir.mark_done("sft");
    dir.steps().write({{"phase", "rl/step_1/update"}, {"unit", "rl/step_1"}, {"step", 1}, {"loss", 4}});
    dir.steps().write({{"phase", "rl"}, {"unit", "rl/step_1"}, {"step", 1}, {"reward/mean", 0.25}});
    dir.mark_done("rl/step_1");
    dir.steps().write({{"phase", "rl/step_2/update"}, {"unit", "rl/step_2"}, {"step", 1}, {"loss", 9}});  // Lost.
  }
  EXPECT_EQ(points_of(run).size(), 4u);
  RunDir dir = reopened();
  dir.steps().write({{"phase", "rl/step_2/update"}, {"unit", "rl/step_2"}, {"step", 1}, {"loss", 8}});
  EXPECT_THAT(points_of(run), ElementsAre(Point{"sft/loss", 1, 0.5f}, Point{"rl_update/loss", 1, 4.0f},
                                          Point{"rl/reward/mean", 1, 0.25f}, Point{"rl_update/loss", 2, 8.0f}));
  for_each_json_line(run / "steps.jsonl", [](int64_t, const Json& line) {
    EXPECT_GT(line.at("time").get<double>(),
              1.7e9);  // Of when it was written, not of the reopening: it is in the line.
  });
}

TEST(RunDir, NotesAreKeptBesideThePhases) {
  fs::path run = fs::path(testing::TempDir()) / "run_dir_notes";
  fs::remove_all(run);
  {
    RunDir dir = RunDir::open(run, "a: 1\n", false);
    EXPECT_TRUE(dir.noted("best").is_null());
    dir.mark_done("sft");
    dir.note("best", {{"name", "rl_3"}});
  }
  RunDir dir = RunDir::open(run, "a: 1\n", false);
  EXPECT_EQ(dir.noted("best").at("name"), "rl_3");
  EXPECT_TRUE(dir.phase_done("sft"));
}

}  // namespace
}  // namespace tritonrl::step_log_test
