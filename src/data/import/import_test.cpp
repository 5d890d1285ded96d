// SPDX-License-Identifier: Apache-2.0
// Importers on good, bad and broken rows, and the job that runs them.
#include "data/import/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"
#include "base/process/build_paths.h"
#include "base/text.h"
#include "data/import/import_job.h"

namespace tritonrl::import_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kSample = source_dir() + "/src/data/testdata/kernelbook.jsonl";

constexpr char kSource[] =
    "import torch\nN = 4\nclass Model(torch.nn.Module):\n\tdef forward(self, x):\n\t\treturn x + 1  # \xc3\xbc\n"
    "def get_inputs():\n    return [torch.rand(N)]\ndef get_init_inputs():\n    return []\n";

class ImportTest : public testing::Test {
 protected:
  ImportTest() { fs::create_directories(folder_); }
  ~ImportTest() override { fs::remove_all(folder_); }

  fs::path write(const std::string& name, const std::string& text) {
    write_file(folder_ / name, text);
    return folder_ / name;
  }
  // Kinds of all rows, "" for those that can be read.
  static std::vector<std::string> kinds(RowSource& rows) {
    std::vector<std::string> out;
    for (Row row; rows.next(&row);) out.push_back(row.kind);
    return out;
  }
  ImportCounts import(const fs::path& in, const Converter& convert, const ImportJudge& judge = {}) {
    auto rows = open_rows(in);
    options_.out = folder_ / "out.jsonl";
    return run_import(*rows, convert, judge, options_);
  }

  fs::path folder_ = fs::temp_directory_path() / cat("import_test_", ::getpid());
  ImportOptions options_;
};

TEST_F(ImportTest, LinesThatAreBrokenDoNotStopTheRest) {
  auto rows = open_rows(write("a.jsonl", "{\"a\": 1}\n\n{\"a\": \n[2]\n{\"a\": 3}"));
  EXPECT_THAT(kinds(*rows), ElementsAre("", "bad_json", "bad_row", ""));
}

TEST_F(ImportTest, ArraysAreCutIntoElements) {
  auto whole = open_rows(write("a.json", " [ {\"a\": \"],}\\\"\"}, {\"b\": [1, {}]} ]\n"));
  EXPECT_THAT(kinds(*whole), ElementsAre("", ""));
  auto cut = open_rows(write("b.json", "[{\"a\": 1}, {\"b\": [1"));
  EXPECT_THAT(kinds(*cut), ElementsAre("", "bad_json"));
  auto none = open_rows(write("c.json", "[]"));
  EXPECT_THAT(kinds(*none), ElementsAre());
}

TEST_F(ImportTest, RowsThatAreTooLargeAreSkipped) {
  std::string large = "{\"a\": \"" + std::string(kMaxRowBytes, 'x') + "\"}\n";
  auto rows = open_rows(write("a.jsonl", large + "{\"a\": 1}\n"));
  EXPECT_THAT(kinds(*rows), ElementsAre("too_large", ""));
}

TEST_F(ImportTest, TruncatedParquetIsAnError) {
  if (!fs::exists(source_dir() + "/.deps/pkg/pyarrow")) GTEST_SKIP() << "no pyarrow: tools/setup.sh fetches it";
  try {
    open_rows(write("a.parquet", "PAR1 and then nothing of the kind"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 2);
    EXPECT_THAT(error.what(), HasSubstr("not a whole Parquet file"));
  }
}

TEST_F(ImportTest, ParquetRowsAreRead) {
  fs::path packages = source_dir() + "/.deps/pkg/pyarrow", file = folder_ / "a.parquet";
  if (!fs::exists(packages)) GTEST_SKIP() << "no pyarrow: tools/setup.sh fetches it";
  fs::path script =
      write("make.py", cat("import sys\nsys.path.insert(0, '", packages.string(),
                           "')\nimport pyarrow, pyarrow.parquet\npyarrow.parquet.write_table(pyarrow.table("
                           "{'n': [1, 2, 3], 'licenses': [['MIT'], [], None]}), '",
                           file.string(), "')\n"));
  ASSERT_EQ(std::system(cat(python_program(), " -I ", script.string()).c_str()), 0);
  auto rows = open_rows(file);
  Row row;
  ASSERT_TRUE(rows->next(&row));
  EXPECT_EQ(row.fields["n"], 1);
  EXPECT_EQ(row.fields["licenses"][0], "MIT");
  EXPECT_THAT(kinds(*rows), ElementsAre("", ""));
}

TEST_F(ImportTest, KernelBookRowsBecomeTasksOrReasons) {
  ImportCounts counts = import(kSample, convert_kernelbook);
  EXPECT_EQ(counts.rows, 13);
  std::map<std::string, int64_t> want = {{"no_class", 1},  {"syntax_error", 1}, {"bad_json", 1}, {"bad_row", 2},
                                         {"duplicate", 1}, {"arguments", 1},    {"no_kernel", 1}};
  EXPECT_EQ(counts.kinds, want);
  auto tasks = load_tasks(options_.out);
  ASSERT_EQ(tasks.size(), 5u);
  EXPECT_EQ(tasks[0].id, "kernelbook/1");
  EXPECT_EQ(tasks[0].licence, "MIT AND BSD-3-Clause");
  EXPECT_THAT(tasks[0].origin, testing::StartsWith("KernelBook: example/kernels@000"));
  EXPECT_THAT(tasks[0].source, testing::AllOf(HasSubstr("class Model(nn.Module)"), HasSubstr("super(Model, self)"),
                                              HasSubstr("return [2.0]")));
  EXPECT_THAT(tasks[0].solution, HasSubstr("class ModelNew(nn.Module)"));
  EXPECT_TRUE(tasks[0].flags.empty());
  EXPECT_THAT(tasks[1].flags, ElementsAre("extern_kernels"));
  EXPECT_THAT(tasks[1].source, testing::AllOf(HasSubstr("class InnerModel"), HasSubstr("self.inner = InnerModel()"),
                                              HasSubstr("return [8]")));
  int64_t lines = 0;
  for_each_json_line(rejected_file(options_.out), [&](int64_t, const Json& json) {
    ++lines;
    EXPECT_GT(json["row"], 0);
    EXPECT_FALSE(json["reason"].get<std::string>().empty());
  });
  EXPECT_EQ(lines, counts.rows - counts.kept);
}

TEST_F(ImportTest, KeywordArgumentsAreOrdered) {
  auto source = [](const std::string& signature, const std::string& inputs) {
    return cat("class Model:\n    def __init__(self, ", signature,
               "):\n        pass\ndef get_init_inputs():\n    return ", inputs, "\n");
  };
  std::string problem;
  EXPECT_THAT(plain_init_inputs(source("a, b: int = 3, c=None", "[[1], {'c': f(2)}]"), &problem),
              HasSubstr("return [1, 3, f(2)]"));
  EXPECT_THAT(plain_init_inputs(source("a", "[[], {}]"), &problem), HasSubstr("return []"));
  EXPECT_THAT(plain_init_inputs(source("a", "[4]"), &problem), HasSubstr("return [4]"));
  EXPECT_EQ(plain_init_inputs(source("a, b", "[[], {'b': 1}]"), &problem), "");
  EXPECT_THAT(problem, HasSubstr("needs a"));
  EXPECT_EQ(plain_init_inputs(source("*a", "[[], {'b': 1}]"), &problem), "");
  EXPECT_THAT(problem, HasSubstr("keyword argument b"));
}

TEST_F(ImportTest, PairsOfAnyone) {
  Row row;
  row.fields = {{"source", kSource}, {"license", "BSD-2-Clause"}, {"origin", "mine"}};
  Converted one = convert_pair(row);
  ASSERT_TRUE(one.task) << one.reason;
  EXPECT_EQ(one.task->licence, "BSD-2-Clause");
  EXPECT_EQ(one.task->origin, "mine");
  EXPECT_EQ(one.task->source, kSource);
  row.fields["solution"] = "def f(): pass\n";
  EXPECT_EQ(convert_pair(row).kind, "no_class");
  row.fields["level"] = "two";
  row.fields.erase("solution");
  EXPECT_EQ(convert_pair(row).kind, "bad_row");
  row.fields = {{"source", std::string(200, '(') + std::string(200, ')')}};
  EXPECT_THAT(convert_pair(row).reason, HasSubstr("nests"));
}

TEST_F(ImportTest, KernelBenchIds) {
  Row row;
  row.fields = {{"level", 2}, {"problem_id", 7}, {"name", "x"}, {"code", kSource}};
  Converted one = convert_kernelbench(row);
  ASSERT_TRUE(one.task) << one.reason;
  EXPECT_EQ(one.task->id, "kernelbench/2/007");
  EXPECT_EQ(one.task->licence, "MIT");
  row.fields.erase("problem_id");
  EXPECT_EQ(convert_kernelbench(row).kind, "bad_row");
}

TEST_F(ImportTest, AStoppedJobGoesOn) {
  options_.window = 2;
  options_.identity = "x";
  int windows = 0;
  auto stop = [&](std::vector<Converted>&) {
    if (++windows == 3) throw environment_error("stopped");
  };
  EXPECT_THROW(import(kSample, convert_kernelbook, stop), Error);
  EXPECT_FALSE(fs::exists(options_.out));
  ImportCounts counts = import(kSample, convert_kernelbook);
  EXPECT_EQ(counts.resumed_at, 4);
  EXPECT_EQ(counts.rows, 13);
  std::string resumed = read_file(options_.out), rejected = read_file(rejected_file(options_.out));
  options_.overwrite = true;
  EXPECT_EQ(import(kSample, convert_kernelbook).resumed_at, 0);
  EXPECT_EQ(read_file(options_.out), resumed);
  EXPECT_EQ(read_file(rejected_file(options_.out)), rejected);
  options_.overwrite = false;
  EXPECT_THROW(import(kSample, convert_kernelbook), Error);  // It is there already.
}

TEST_F(ImportTest, AStateOfAnotherImportIsRefused) {
  options_.identity = "x";
  options_.window = 2;
  int windows = 0;
  auto stop = [&](std::vector<Converted>&) {
    if (++windows == 2) throw environment_error("stopped");
  };
  EXPECT_THROW(import(kSample, convert_kernelbook, stop), Error);
  options_.identity = "y";
  EXPECT_THROW(import(kSample, convert_kernelbook), Error);
}

}  // namespace
}  // namespace tritonrl::import_test
