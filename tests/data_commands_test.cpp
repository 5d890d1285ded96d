// SPDX-License-Identifier: Apache-2.0
// `tritonrl data ...` as a user meets it: exit codes, files, the lines that matter, and input that is no good.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/files/json.h"
#include "base/process/build_paths.h"
#include "base/text.h"
#include "support/run_program.h"

namespace tritonrl::data_commands_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
namespace fs = std::filesystem;

const std::string kSource = source_dir();
const std::string kCases = kSource + "/tests/cases/";

int64_t count_lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

std::string first_lines(const std::string& text, int64_t n) {
  size_t at = 0;
  for (; n > 0; --n) at = text.find('\n', at) + 1;
  return text.substr(0, at);
}

// Small tasks of one or two element-wise operations: few of them take seconds.
const std::vector<std::string> kQuick = {"--set", "data.synth.style=plain",      "--set", "data.synth.operators=[core]",
                                         "--set", "data.synth.dtypes=[float32]", "--set", "data.synth.level1_share=0.9",
                                         "--set", "data.synth.max_nodes=2",      "--set", "verify.gpus=0"};

class DataCommands : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / cat("tritonrl_data_commands_test_", ::getpid());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  std::string text(const std::string& name) const { return read_file(folder_ / name); }
  std::string write(const std::string& name, const std::string& bytes) const {
    write_file(folder_ / name, bytes);
    return at(name);
  }
  std::string write_rows(const std::string& name, const std::vector<Json>& rows) const {
    std::string lines;
    for (const Json& row : rows) lines += json_line(row) + "\n";
    return write(name, lines);
  }
  std::vector<Json> rows(const std::string& name) const {
    std::vector<Json> out;
    for_each_json_line(folder_ / name, [&](int64_t, const Json& json) { out.push_back(json); });
    return out;
  }
  std::vector<std::string> files() const {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(folder_)) out.push_back(entry.path().filename());
    std::sort(out.begin(), out.end());
    return out;
  }

  static Ended data(std::vector<std::string> words, const std::vector<std::string>& more = {}) {
    words.insert(words.begin(), "data");
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  // Runs it and says what it printed, provided that it ended with `code`.
  static std::string says(int code, const std::vector<std::string>& words) {
    Ended ended = data(words);
    EXPECT_EQ(ended.code, code) << join(words, " ") << ": " << ended.said;
    return ended.said;
  }

  // x * sigmoid(x), with a right solution.
  static Json swish() {
    return {{"id", "swish"},
            {"source", read_file(kCases + "tasks/swish.py")},
            {"solution", read_file(kCases + "honest/swish_basic.py")}};
  }
  // A change of the swish task, without a solution.
  static Json variant(const std::string& id, const std::string& from, const std::string& to) {
    std::string source = swish()["source"];
    EXPECT_NE(source.find(from), std::string::npos) << from;
    return {{"id", id}, {"source", replace_all(source, from, to)}, {"level", 1}};
  }

  fs::path folder_;
};

// --- synth.

TEST_F(DataCommands, SynthGoesOnWhereAPartialFileEndsAndMakesTheSameBytes) {
  EXPECT_THAT(says(0, {"synth", "--count", "60", "--out", at("whole.jsonl")}), HasSubstr("60 tasks in"));
  const std::string whole = text("whole.jsonl");
  EXPECT_EQ(count_lines(whole), 60);
  std::set<std::string> ids;
  for (const Json& task : rows("whole.jsonl")) ids.insert(task["id"].get<std::string>());
  EXPECT_EQ(ids.size(), 60u);

  std::string begun = first_lines(whole, 21);
  write("again.jsonl.partial", begun.substr(0, begun.size() - 100));  // The last line is cut.
  std::vector<std::string> command = {"synth", "--count", "60", "--out", at("again.jsonl")};
  auto other = command;
  other.insert(other.end(), {"--set", "data.synth.seed=99"});
  EXPECT_THAT(says(2, other), HasSubstr("comes from another configuration"));
  EXPECT_THAT(says(0, command), HasSubstr("40 made now"));
  EXPECT_EQ(text("again.jsonl"), whole);
  EXPECT_THAT(says(0, command), HasSubstr("is there already"));
  EXPECT_THAT(says(0, {"synth", "--count", "70", "--out", at("again.jsonl")}), HasSubstr("10 made now"));
  EXPECT_THAT(text("again.jsonl"), StartsWith(whole));
  EXPECT_THAT(files(), ElementsAre("again.jsonl", "whole.jsonl"));
}

TEST_F(DataCommands, SynthRefusesWhatContradictsItself) {
  const std::string out = at("x.jsonl");
  EXPECT_THAT(says(2, {"synth", "--count", "5", "--solved", "2", "--out", out}), HasSubstr("not both"));
  EXPECT_THAT(says(2, {"synth", "--count", "5", "--solved", "0", "--out", out}), HasSubstr("not both"));
  EXPECT_THAT(says(2, {"synth", "--count", "0", "--out", out}), HasSubstr("must be at least 1"));
  EXPECT_THAT(says(2, {"synth", "--solved", "-1", "--out", out}), HasSubstr("must be at least 1"));
  EXPECT_THAT(says(2, {"synth", "--verify", "--out", out}), HasSubstr("--verify goes with --count"));
  EXPECT_THAT(says(2, {"synth", "--count", "5"}), HasSubstr("--out"));
  EXPECT_THAT(files(), ElementsAre());
  write("file", "");
  EXPECT_THAT(says(3, {"synth", "--count", "5", "--out", at("file/x.jsonl")}), HasSubstr("cannot create the folder"));
  EXPECT_THAT(says(3, {"synth", "--out", at("file")}), HasSubstr("cannot create the folder"));
}

TEST_F(DataCommands, SynthWithoutACountMakesTheSplitsOfARun) {
  std::string said = says(0, {"synth", "--out", at("splits")});
  std::map<std::string, size_t> made;
  for (const char* split : {"train", "rl", "heldout"}) {
    made[split] = rows(cat("splits/", split, ".jsonl")).size();
    EXPECT_GT(made[split], 0u) << split;
    EXPECT_THAT(said, HasSubstr(cat(made[split], " ", split)));
  }
  // Other constants may be left (exit 1): "held out" means another graph, constants included.
  Ended leaks = data(
      {"check-split", "--no-record", "--train", at("splits/train.jsonl"), "--heldout", at("splits/heldout.jsonl")});
  EXPECT_THAT(leaks.said, HasSubstr("pairs: graph 0  source 0"));
}

TEST_F(DataCommands, SynthMakesTasksUntilSoManyAreSolved) {
  std::vector<std::string> one = {"synth", "--solved", "2", "--out", at("s.jsonl")};
  Ended ended = data(one, kQuick);
  ASSERT_EQ(ended.code, 0) << ended.said;
  auto tally = [&] {
    int64_t kept = 0, solved = 0;
    for (const Json& verdict : rows("s.jsonl.verdicts.jsonl")) {
      kept += verdict["kept"].get<bool>();
      solved += verdict["kept"].get<bool>() && verdict["has_solution"].get<bool>();
    }
    auto tasks = rows("s.jsonl");
    EXPECT_EQ(static_cast<int64_t>(tasks.size()), kept);
    EXPECT_EQ(std::count_if(tasks.begin(), tasks.end(), [](const Json& task) { return task.contains("solution"); }),
              solved);
    return solved;
  };
  int64_t solved = tally();
  EXPECT_GE(solved, 2);
  int64_t made = count_lines(text("s.jsonl.verdicts.jsonl"));
  EXPECT_THAT(ended.said, HasSubstr(cat("of ", made, " (")));
  EXPECT_THAT(files(), ElementsAre("s.jsonl", "s.jsonl.verdicts.jsonl"));
  const std::string tasks = text("s.jsonl"), verdicts = text("s.jsonl.verdicts.jsonl");
  Ended again = data({"synth", "--solved", "1", "--out", at("s.jsonl")}, kQuick);
  EXPECT_EQ(again.code, 0) << again.said;
  EXPECT_THAT(again.said, HasSubstr("is there already"));

  // Stopped while verdicts were written, when their tasks were: what has no verdict is made again, to the same.
  fs::rename(at("s.jsonl"), at("s.jsonl.partial"));
  std::string cut = first_lines(verdicts, made - 2);
  write("s.jsonl.verdicts.jsonl", cut.substr(0, cut.size() - 20));
  Ended resumed = data({"synth", "--count", cat(made), "--verify", "--out", at("s.jsonl")}, kQuick);
  ASSERT_EQ(resumed.code, 0) << resumed.said;
  EXPECT_EQ(text("s.jsonl"), tasks);
  EXPECT_EQ(tally(), solved);
  auto before = split(trim(verdicts), '\n');
  std::vector<Json> after = rows("s.jsonl.verdicts.jsonl");
  ASSERT_EQ(after.size(), before.size());
  for (size_t i = 0; i < before.size(); ++i) {
    Json verdict = Json::parse(before[i]);
    verdict["seconds"] = after[i]["seconds"];
    EXPECT_EQ(after[i], verdict);
  }
  EXPECT_THAT(files(), ElementsAre("s.jsonl", "s.jsonl.verdicts.jsonl"));
}

// --- stats, list, show.

TEST_F(DataCommands, StatsCountsWhatIsThere) {
  says(0, {"synth", "--count", "30", "--out", at("t.jsonl")});
  auto tasks = rows("t.jsonl");
  std::map<std::string, int64_t> levels;
  int64_t solved = 0;
  for (const Json& task : tasks) {
    ++levels[task["level"].dump()];
    solved += !task.value("solution", "").empty();
  }
  Json stats = Json::parse(says(0, {"stats", at("t.jsonl"), "--json", "--set", "policy.model=none"}));
  EXPECT_EQ(stats["tasks"], 30);
  EXPECT_EQ(stats["with_solution"], solved);
  EXPECT_EQ(stats["levels"], Json(levels));
  EXPECT_EQ(stats["graphs"], 30);
  EXPECT_EQ(stats["length_unit"], "characters");
  EXPECT_THAT(says(0, {"stats", at("t.jsonl"), "--out", at("page.md")}), HasSubstr(cat("30 tasks, ", solved, " with")));
  EXPECT_THAT(text("page.md"), HasSubstr("Tasks in t.jsonl"));
  says(0, {"stats", at("t.jsonl"), "--out", at("page.html")});
  EXPECT_THAT(text("page.html"), HasSubstr("Tasks in t.jsonl"));
}

TEST_F(DataCommands, ListFiltersAndShowPrintsOne) {
  Json plain = variant("plain", "x * torch.sigmoid(x)", "torch.softmax(x, dim=-1)"), solved = swish();
  plain["level"] = 2;
  solved["level"] = 1;
  for (Json* task : {&plain, &solved}) (*task)["name"] = "", (*task)["graph_hash"] = "";
  const std::string file = write_rows("t.jsonl", {solved, plain});
  auto listed = [&](const std::string& where) { return says(0, {"list", file, "--where", where}); };
  EXPECT_THAT(says(0, {"list", file}), HasSubstr("2 of 2 tasks"));
  EXPECT_THAT(listed("level=2 and op=softmax"), testing::AllOf(HasSubstr("1 of 2"), HasSubstr("plain  level 2")));
  EXPECT_THAT(listed("level=1 and op=softmax"), HasSubstr("0 of 2 tasks"));
  std::string json = says(0, {"list", file, "--json", "--where", "level=1"});
  EXPECT_EQ(Json::parse(json.substr(json.find('{'), json.rfind('}') - json.find('{') + 1)), solved);
  EXPECT_THAT(says(2, {"list", file, "--where", "levle=1"}), HasSubstr("did you mean 'level'?"));
  EXPECT_THAT(says(2, {"list", file, "--where", "level=1 op=x"}), HasSubstr("join comparisons with 'and' or 'or'"));

  std::string shown = says(0, {"show", file, "swish"});
  EXPECT_THAT(shown, HasSubstr(solved["source"].get<std::string>()));
  EXPECT_THAT(shown, HasSubstr("# ---- solution ----\n\n" + solved["solution"].get<std::string>()));
  EXPECT_EQ(says(0, {"show", "swish", file}), shown);  // Either order.
  EXPECT_THAT(says(0, {"show", file, "plain"}), Not(HasSubstr("solution")));
  EXPECT_THAT(says(2, {"show", file, "swsh"}), HasSubstr("did you mean 'swish'?"));
}

TEST_F(DataCommands, OperatorsSaysWhatTheSynthesiserLacks) {
  auto own = [](Json task, int level) {
    task["level"] = level;
    task["name"] = task["graph_hash"] = "";
    return task;
  };
  Json solved = own(swish(), 1), taught = own(variant("taught", "x * torch.sigmoid(x)", "torch.prod(x, dim=1)"), 1);
  Json sorted = own(variant("sorted", "x * torch.sigmoid(x)", "torch.sort(x, dim=1)[0]"), 1);
  Json other = own(variant("other", "x * torch.sigmoid(x)", "torch.fft.rfft(torch.sort(x)[0]).abs()"), 2);
  std::string said = says(0, {"operators", write_rows("t.jsonl", {solved, taught, sorted, other})});
  EXPECT_THAT(said, HasSubstr("level 1: 2 of 3 references have every operator in the table with a solution"));
  EXPECT_THAT(said, HasSubstr("level 2: 0 of 1 references"));
  EXPECT_THAT(said, HasSubstr("missing, by number of tasks:\n  2  sort  sorted other\n  1  rfft  other\n"));
  EXPECT_THAT(says(2, {"operators", at("none.jsonl")}), HasSubstr("none.jsonl: no such file"));
}

TEST_F(DataCommands, BadTaskSetsAreRefusedWithTheLine) {
  says(0, {"synth", "--count", "3", "--out", at("good.jsonl")});
  const std::string good = text("good.jsonl");
  write("half.jsonl", good.substr(0, good.size() - 200));
  write("twice.jsonl", good + first_lines(good, 1));
  write("list.jsonl", "[1, 2]\n");
  write("other.jsonl", "{\"id\": \"a\"}\n");
  const std::map<std::string, std::string> faults = {{"missing.jsonl", "missing.jsonl: no such file"},
                                                     {"half.jsonl", "half.jsonl:3: line is not valid JSON"},
                                                     {"list.jsonl", "list.jsonl:1: a task must be a JSON object"},
                                                     {"other.jsonl", "other.jsonl:1: "},
                                                     {".", ": is a folder, not a file"},
                                                     {"twice.jsonl", "twice.jsonl:4: task id 'graphs/7/000000'"}};
  const std::string out = at("out.jsonl"), fine = at("good.jsonl");
  for (const auto& [name, fault] : faults) {
    const std::string bad = at(name);
    std::vector<std::vector<std::string>> commands = {{"check-split", "--train", fine, "--heldout", bad}};
    // These read line by line and remember nothing.
    if (name != "twice.jsonl") commands.push_back({"stats", bad});
    if (name == "missing.jsonl" || name == "half.jsonl" || name == ".") {
      commands.insert(commands.end(), {{"list", bad},
                                       {"show", bad, "no such id"},
                                       {"lint", bad},
                                       {"label", bad, "--out", out},
                                       {"variants", bad, "--out", out}});
    }
    for (const auto& command : commands) EXPECT_THAT(says(2, command), HasSubstr(fault)) << command[0];
  }
  EXPECT_FALSE(fs::exists(out));
}

// --- import.

TEST_F(DataCommands, ImportKernelBookKeepsOrRejectsEachRowWithAReason) {
  const std::string sample = kSource + "/src/data/testdata/kernelbook.jsonl";
  std::vector<std::string> command = {"import", "kernelbook", sample, "--out", at("kb.jsonl"), "--no-record"};
  EXPECT_THAT(says(0, command), HasSubstr("13 rows, 5 kept"));
  std::map<std::string, int64_t> kinds;
  for (const Json& row : rows("kb.rejected.jsonl")) {
    ++kinds[row["kind"].get<std::string>()];
    EXPECT_NE(row["reason"], "") << row;
  }
  EXPECT_EQ(kinds, (std::map<std::string, int64_t>{{"arguments", 1},
                                                   {"bad_json", 1},
                                                   {"bad_row", 2},
                                                   {"duplicate", 1},
                                                   {"no_class", 1},
                                                   {"no_kernel", 1},
                                                   {"syntax_error", 1}}));
  auto tasks = rows("kb.jsonl");
  ASSERT_EQ(tasks.size(), 5u);
  EXPECT_EQ(tasks[0]["id"], "kernelbook/1");
  EXPECT_THAT(tasks[0]["source"].get<std::string>(), HasSubstr("class Model("));
  EXPECT_THAT(tasks[0]["solution"].get<std::string>(), HasSubstr("class ModelNew("));
  EXPECT_THAT(says(0, {"list", at("kb.jsonl")}), HasSubstr("5 of 5 tasks"));

  const std::string first = text("kb.jsonl");
  EXPECT_THAT(says(2, command), HasSubstr("is there already"));
  command.push_back("--overwrite");
  says(0, command);
  EXPECT_EQ(text("kb.jsonl"), first);
  EXPECT_THAT(files(), ElementsAre("kb.jsonl", "kb.rejected.jsonl"));
}

TEST_F(DataCommands, ImportWithVerifyKeepsWhatIsRight) {
  Json wrong = {{"id", "wrong"}, {"source", read_file(kCases + "tasks/row_sum.py")}, {"solution", swish()["solution"]}};
  Json broken = variant("broken", "return x *", "raise ValueError('four is not five'); return x *");
  const std::string good =
      write_rows("rows.jsonl", {swish(), wrong, broken, variant("dull", "torch.sigmoid(x)", "2"), swish()});
  write("rows.jsonl", text("rows.jsonl") + "{\"id\": \"half\n");
  Ended ended = data({"import", "jsonl", good, "--out", at("t.jsonl"), "--verify", "--set", "verify.gpus=0"});
  ASSERT_EQ(ended.code, 0) << ended.said;
  EXPECT_THAT(ended.said, HasSubstr("6 rows, 2 kept"));
  std::map<std::string, std::string> kinds, reasons;
  for (const Json& row : rows("t.rejected.jsonl")) {
    kinds[row["row"].dump()] = row["kind"];
    reasons[row["id"]] = row["reason"];
  }
  EXPECT_EQ(kinds, (std::map<std::string, std::string>{
                       {"2", "wrong_output"}, {"3", "unrecordable"}, {"5", "duplicate"}, {"6", "bad_json"}}));
  EXPECT_THAT(reasons["broken"], HasSubstr("four is not five"));
  auto tasks = rows("t.jsonl");
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_EQ(tasks[0]["id"], "swish");
  EXPECT_EQ(tasks[0]["level"], 2);  // A product and a sigmoid.
  EXPECT_EQ(tasks[1]["id"], "dull");
  EXPECT_EQ(tasks[1]["level"], 1);
}

TEST_F(DataCommands, ImportOfNothingUsable) {
  EXPECT_THAT(says(2, {"import", "jsonl", at("none.jsonl"), "--out", at("t.jsonl"), "--no-record"}),
              HasSubstr("none.jsonl"));
  EXPECT_THAT(says(2, {"import", "kernelbook", folder_.string(), "--out", at("t.jsonl"), "--no-record"}),
              HasSubstr("is a folder, not a file"));
  EXPECT_THAT(files(), ElementsAre());
  write("bad.jsonl", "{\"id\": 3}\n");
  EXPECT_THAT(says(1, {"import", "jsonl", at("bad.jsonl"), "--out", at("t.jsonl"), "--no-record"}),
              HasSubstr("1 rows, 0 kept"));
  EXPECT_EQ(rows("t.rejected.jsonl").at(0)["kind"], "bad_row");
}

// --- What needs the verifier.

std::vector<Json> as_tasks(std::vector<Json> rows) {
  for (Json& row : rows) {
    row["name"] = row["graph_hash"] = "";
    row["level"] = 1;
  }
  return rows;
}

TEST_F(DataCommands, LintFlagsWhatIsOfNoUse) {
  write_rows("t.jsonl", as_tasks({swish(), variant("dead", "x * torch.sigmoid(x)", "x * 0.0")}));
  Ended ended = data({"lint", at("t.jsonl"), "--out", at("f.jsonl"), "--json", at("f.json"), "--set", "verify.gpus=0"});
  EXPECT_EQ(ended.code, 1) << ended.said;
  EXPECT_THAT(ended.said, HasSubstr("2 tasks (0 at tiny sizes), 1 flagged"));
  Json findings = read_json(at("f.json"));
  EXPECT_EQ(findings["tasks"], 2);
  EXPECT_EQ(findings["flagged"], 1);
  EXPECT_EQ(findings["flags"]["zero"], 1);
  EXPECT_EQ(findings["reports"][0]["flags"], Json::array());
  EXPECT_EQ(findings["reports"][0]["controls"], 2);
  auto tasks = rows("f.jsonl");
  EXPECT_EQ(tasks.at(0).value("flags", Json::array()), Json::array());
  EXPECT_THAT(tasks.at(1)["flags"].get<std::vector<std::string>>(), testing::Contains("zero"));
}

TEST_F(DataCommands, LabelRecordsGraphsByWhichALeakIsFound) {
  // The same graph written in another way: only its trace shows it.
  Json heldout = variant("heldout", "return x * torch.sigmoid(x)",
                         "gate = x.sigmoid()\n        unused = gate + 1\n        return torch.mul(x, gate)");
  Json unlike = variant("unlike", "x * torch.sigmoid(x)", "torch.cumsum(x, dim=1)");
  write_rows("t.jsonl", as_tasks({swish(), unlike, heldout}));
  Ended ended = data({"label", at("t.jsonl"), "--out", at("l.jsonl"), "--relabel", "--set", "verify.gpus=0"});
  ASSERT_EQ(ended.code, 0) << ended.said;
  EXPECT_THAT(ended.said, HasSubstr("same: 1 of 3 recorded"));
  auto tasks = rows("l.jsonl");
  ASSERT_EQ(tasks.size(), 3u);
  EXPECT_EQ(tasks[0]["level"], 2);
  EXPECT_EQ(tasks[1]["level"], 1);
  EXPECT_EQ(tasks[0]["recorded"]["graph"], tasks[2]["recorded"]["graph"]);
  EXPECT_NE(tasks[0]["recorded"]["graph"], tasks[1]["recorded"]["graph"]);

  write_rows("train.jsonl", {tasks[0], tasks[1]});
  write_rows("heldout.jsonl", {tasks[2]});
  std::string said = says(1, {"check-split", "--train", at("train.jsonl"), "--heldout", at("heldout.jsonl"), "--json",
                              at("leaks.json"), "--clean", at("clean.jsonl")});
  EXPECT_THAT(said, HasSubstr("graph     swish ~ heldout"));
  EXPECT_THAT(said, HasSubstr("1 training tasks leak, 1 held-out tasks are given away"));
  Json leaks = read_json(at("leaks.json"));
  EXPECT_EQ(leaks["pairs"], (Json{{"graph", 1}, {"source", 0}, {"constants", 0}, {"near", 0}, {"outline", 0}}));
  EXPECT_EQ(leaks["not_recorded"], 0);
  EXPECT_EQ(leaks["leaks"][0]["train"], "swish");
  ASSERT_EQ(rows("clean.jsonl").size(), 1u);
  EXPECT_EQ(rows("clean.jsonl")[0]["id"], "unlike");
  EXPECT_THAT(says(0, {"check-split", "--train", at("clean.jsonl"), "--heldout", at("heldout.jsonl")}),
              HasSubstr("0 training tasks leak"));
}

TEST_F(DataCommands, CheckSplitSeesLeaksInSourcesAlone) {
  Json copy = variant("copy", "# Level 1: x * sigmoid(x).", "# Something else.");
  Json constants = variant("constants", "x * torch.sigmoid(x)", "x * torch.sigmoid(x * 3.0)");
  write_rows("train.jsonl", as_tasks({copy, constants}));
  write_rows("heldout.jsonl", as_tasks({swish(), variant("scaled", "torch.sigmoid(x)", "torch.sigmoid(x * 2.0)")}));
  says(1, {"check-split", "--no-record", "--train", at("train.jsonl"), "--heldout", at("heldout.jsonl"), "--json",
           at("leaks.json")});
  std::set<std::string> pairs;
  Json found = read_json(at("leaks.json"));
  for (const Json& leak : found["leaks"]) {
    pairs.insert(cat(leak["kind"].get<std::string>(), " ", leak["train"].get<std::string>(), " ",
                     leak["heldout"].get<std::string>()));
  }
  EXPECT_TRUE(pairs.count("source copy swish")) << join({pairs.begin(), pairs.end()}, ", ");
  EXPECT_TRUE(pairs.count("constants constants scaled")) << join({pairs.begin(), pairs.end()}, ", ");
  write_rows("far.jsonl", as_tasks({{{"id", "sum"}, {"source", read_file(kCases + "tasks/cumsum.py")}}}));
  says(0, {"check-split", "--no-record", "--train", at("far.jsonl"), "--heldout", at("heldout.jsonl")});
}

TEST_F(DataCommands, VariantsFindSizesAndLeaveSolutionsAlone) {
  Json open = variant("open", "x * torch.sigmoid(x)", "torch.relu(x)");
  write_rows("t.jsonl", as_tasks({swish(), open}));
  Ended ended = data({"variants", at("t.jsonl"), "--out", at("v.jsonl"), "--set", "verify.gpus=0"});
  ASSERT_EQ(ended.code, 0) << ended.said;
  EXPECT_THAT(ended.said, HasSubstr("2 tasks, tiny 1, +50 % 1, both 1"));
  EXPECT_THAT(ended.said, HasSubstr("left alone because they have a solution 1"));
  auto tasks = rows("v.jsonl");
  EXPECT_EQ(tasks.at(0).value("larger", Json::object()), Json::object());
  EXPECT_EQ(tasks.at(0)["source"], swish()["source"]);
  EXPECT_EQ(tasks.at(1)["larger"], (Json{{"COLS", 375}, {"ROWS", 24}}));
  EXPECT_LT(tasks.at(1)["tiny"]["COLS"], 250);
  EXPECT_EQ(tasks.at(1)["source"], open["source"]);
}

}  // namespace
}  // namespace tritonrl::data_commands_test
