// SPDX-License-Identifier: Apache-2.0
// Whole reports: the approved text, broken runs, hostile candidates.
#include "report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/error.h"
#include "base/files/json_fields.h"
#include "base/process/build_paths.h"
#include "base/rng.h"
#include "base/text.h"
#include "report/ablation_page.h"
#include "report/layout.h"
#include "report/sections.h"
#include "support/made_up_run.h"

namespace tritonrl::report_test {
namespace {

namespace fs = std::filesystem;
// Not gmock's HasSubstr, which would print the whole page.
testing::AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess() << "found: " << part;
  return testing::AssertionFailure() << "not found: " << part;
}

// A folder of its own for each test; gone afterwards.
class ReportTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() /
            cat("tritonrl_report_", ::getpid(), "_", testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(root_);
    dir_ = root_ / "made_up";
    write_made_up_run(dir_);
  }
  void TearDown() override { fs::remove_all(root_); }
  std::string html() const { return render_html(load_run(dir_)); }
  std::string markdown() const { return render_markdown(load_run(dir_)); }
  fs::path root_, dir_;
};

int count_of(const std::string& text, const std::string& what) {
  int count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

// "" when every element is closed in order, every attribute is quoted, ids are unique and nothing stands behind
// </html>; else what is wrong. Scripts and styles are skipped as a browser skips them.
std::string html_problem(const std::string& page) {
  const std::vector<std::string> empty_elements = {"meta", "!DOCTYPE"};
  std::vector<std::string> open;
  std::vector<std::string> ids;
  for (size_t at = page.find('<'); at != std::string::npos; at = page.find('<', at)) {
    size_t end = at + 1;
    bool quoted = false;
    while (end < page.size() && (quoted || page[end] != '>')) quoted ^= page[end++] == '"';
    if (end >= page.size()) return cat("tag without end at byte ", at);
    std::string tag = page.substr(at + 1, end - at - 1);
    at = end + 1;
    bool closing = tag.front() == '/', self_closed = tag.back() == '/';
    std::string name = tag.substr(closing, tag.find_first_of(" /", closing) - closing);
    if (closing) {
      if (open.empty() || open.back() != name)
        return cat("</", name, "> closes ", open.empty() ? "nothing" : open.back());
      open.pop_back();
      continue;
    }
    if (size_t id = tag.find(" id=\""); id != std::string::npos) {
      std::string value = tag.substr(id + 5, tag.find('"', id + 5) - id - 5);
      if (std::find(ids.begin(), ids.end(), value) != ids.end()) return cat("id ", value, " twice");
      ids.push_back(value);
    }
    for (size_t equals = tag.find('='); equals != std::string::npos; equals = tag.find('=', equals)) {
      if (equals + 1 >= tag.size() || tag[equals + 1] != '"') return cat("unquoted attribute in <", tag, ">");
      equals = tag.find('"', equals + 2);
      if (equals == std::string::npos) return cat("open quote in <", tag, ">");
    }
    if (self_closed || std::find(empty_elements.begin(), empty_elements.end(), name) != empty_elements.end()) continue;
    open.push_back(name);
    if (name == "script" || name == "style") at = page.find("</" + name, at);
  }
  if (!open.empty()) return cat("<", open.back(), "> is never closed");
  return page.ends_with("</html>\n") ? "" : "text behind </html>";
}

TEST_F(ReportTest, MarkdownIsTheApprovedText) {
  fs::path golden = fs::path(source_dir()) / "tests/golden/report/report.md";
  std::string text = markdown();
  if (std::getenv("TRITONRL_UPDATE_GOLDEN")) write_file(golden, text);
  EXPECT_EQ(text, read_file(golden))
      << "if the new text is right: TRITONRL_UPDATE_GOLDEN=1 report_test, then read the diff";
}

TEST_F(ReportTest, WritesBothFilesAndAgainTheSame) {
  write_report(dir_);
  std::string page = read_file(dir_ / "report.html"), text = read_file(dir_ / "report.md");
  write_report(dir_);
  EXPECT_EQ(read_file(dir_ / "report.html"), page);
  EXPECT_EQ(read_file(dir_ / "report.md"), text);
  EXPECT_EQ(text, markdown());
}

TEST_F(ReportTest, SaysWhatTrainingWasComparedWith) {
  EXPECT_FALSE(contains(markdown(), "compared with any benchmark")) << "nobody knows";
  TrainingSet set;
  auto says = [&] {
    write_file(dir_ / kTrainingSetFile, json_of(set).dump());
    return markdown();
  };
  EXPECT_TRUE(contains(says(), "Training was not compared with any benchmark"));
  set.benchmark = ExcludedBenchmark{"sets/bench.jsonl", std::string(64, 'a'), 270, 196, 0, {}};
  set.compared = 45000;
  set.left_out = 12;
  EXPECT_TRUE(contains(says(), "graph of a task of bench.jsonl: 45000 compared with 196 graphs of its 270 tasks"));
  write_file(dir_ / kTrainingSetFile, "{}");
  EXPECT_TRUE(contains(markdown(), "cannot be read"));
  Json results = read_json(dir_ / "results.json");
  EXPECT_FALSE(contains(markdown(), "Never seen"));
  results["rows"][1]["teaching"] = {{kNeverSeen, {{"tasks", 3}, {"correct", {{"k", 1}, {"n", 12}}}}}};
  write_file(dir_ / "results.json", results.dump());
  EXPECT_TRUE(contains(markdown(), "Never seen"));
  EXPECT_TRUE(contains(markdown(), "1 of 12"));
}

// Of the page's variables, those that something is drawn in and that its style does not define.
std::string undefined_colours(const std::string& page) {
  std::string missing;
  for (size_t at = page.find("var(--"); at != std::string::npos; at = page.find("var(--", at + 1)) {
    std::string name = page.substr(at + 4, page.find(')', at) - at - 4);
    if (!contains(page, name + ":")) missing += name + " ";
  }
  return missing;
}

TEST_F(ReportTest, PageIsWellFormedAndSaysWhatTheMarkdownSays) {
  std::string page = html();
  EXPECT_EQ(html_problem(page), "");
  for (const char* part :
       {"<!DOCTYPE html>\n<html lang=\"en\">", "<h1>Run made_up</h1>",
        "SFT made 33.3 % of held-out level-1 samples correct", "<h2 id=\"results-on-held-out-tasks\">",
        "<small>6 of 12, 25-75 %</small>", "not measured", "stopped at tiny run", "SFT loss",
        "RL: mean reward per step", "RL: share of rollouts that are correct", "Time per phase", "One that passed",
        "One that failed", "97 of 128 elements differ", "prefers-color-scheme: dark",
        "tritonrl train &#39;configs/quick start.yaml&#39; --set seed=7", "credit: best_of_n", "0123abcd"}) {
    EXPECT_TRUE(contains(page, part));
  }
  EXPECT_EQ(count_of(page, "<svg "), 5);
  EXPECT_FALSE(contains(page, "http://"));
  EXPECT_FALSE(contains(page, "https://")) << "the page works offline";
  EXPECT_EQ(count_of(page, "<script"), 0);
  EXPECT_TRUE(contains(page, ", step 1: ")) << "a point says its numbers";
  EXPECT_EQ(undefined_colours(page), "");
}

TEST_F(ReportTest, VerifyingBesideSamplingIsNotCountedTwice) {
  EXPECT_TRUE(contains(html(), "rl: verify<"));
  write_file(dir_ / "steps.jsonl", "");
  LineFile::open(dir_ / "steps.jsonl")
      .write({{"phase", "rl"},
              {"step", 1},
              {"time/phase/rollout", 40.0},
              {"time/phase/verify", 35.0},
              {"time/phase/verify_alone", 5.0},
              {"time/phase/update", 15.0},
              {"seconds", 60.0}});
  std::string page = html();
  EXPECT_TRUE(contains(page, "rl: verify, behind sampling"));
  EXPECT_FALSE(contains(page, "rl: verify<"));
  EXPECT_TRUE(contains(page, "Training steps took 1 m 00 s in all")) << page;
}

TEST_F(ReportTest, PageStaysSmallEnough) {
  // A candidate of 10 MB is cut, and the cut is said.
  Json examples = read_json(dir_ / "examples.json");
  examples["failed"]["code"] = std::string(10 << 20, '<');
  write_file(dir_ / "examples.json", examples.dump());
  std::string page = html();
  EXPECT_LE(page.size(), 1u << 20);
  EXPECT_TRUE(contains(page, "more bytes left out of this report]"));
}

// Puts `attack` into every place a candidate or a damaged file can write to.
void poison(const fs::path& dir, const std::string& attack) {
  Json examples = read_json(dir / "examples.json");
  for (auto& [name, example] : examples.items()) {
    for (const char* key : {"id", "task", "code", "task_source"}) example[key] = attack;
    example["delegated_ops"] = {attack};
    for (auto& stage : example["stages"]) {
      if (stage.contains("finding")) stage["finding"]["message"] = attack;
    }
  }
  write_file(dir / "examples.json", json_line(examples));
  write_file(dir / "config.yaml", attack);
  write_file(dir / "env.json", json_line({{"command", {attack}}, {attack, attack}}));
  Json results = read_json(dir / "results.json");
  for (auto& row : results["rows"]) row["model"] = attack;
  for (auto& comparison : results["comparisons"]) comparison["a"] = comparison["b"] = attack;
  write_file(dir / "results.json", json_line(results));
  LineFile::open(dir / "steps.jsonl")
      .write({{"phase", attack}, {"step", 1}, {"seconds", 3}, {"time/phase/" + attack, 1}});
  LineFile::open(dir / "steps.jsonl").write({{"phase", "rl"}, {"step", 99}, {"verify/outcome/" + attack, 7}});
  Json verdict = to_json(made_up_verdict("x", "y", 1, Stage::kCompile, Outcome::kTimeout, attack));
  verdict["phase"] = attack;
  verdict["sandbox_missing"] = {attack};
  LineFile::open(dir / "verdicts.jsonl").write(verdict);
}

TEST_F(ReportTest, HostileTextIsInert) {
  for (const std::string attack :
       {"</script><script>alert(1)</script>", "<img src=x onerror=alert(2)>", "\" onmouseover=\"alert(3)",
        "</code></pre><h2>x", "<!-- <script>", "]]><svg onload=alert(4)>", "&lt;script&gt;",
        "a\n\n# Injected\n\n[x](javascript:alert(5)) | `` | ```"}) {
    write_made_up_run(dir_);
    std::string before = html();
    poison(dir_, attack);
    std::string page = html();
    EXPECT_EQ(html_problem(page), "") << attack;
    EXPECT_EQ(count_of(page, "<script"), 0) << attack;
    EXPECT_EQ(count_of(page, "<h2"), count_of(before, "<h2")) << attack;
    EXPECT_EQ(count_of(page, "<img"), 0) << attack;
    EXPECT_EQ(count_of(page, "<svg"), count_of(before, "<svg")) << attack;
    EXPECT_EQ(count_of(page, "<!--"), 0) << attack;
    EXPECT_EQ(count_of(page, " onmouseover=\""), 0) << attack;
    EXPECT_TRUE(contains(page, reporting::escape_html(attack))) << attack;
    // Markdown: outside fenced code, no line is ours but holds raw markup.
    std::string fence;
    for (const auto& line : split(markdown(), '\n')) {
      bool is_fence = line.starts_with("```");
      if (fence.empty() && is_fence) {
        fence = line.substr(0, line.find_first_not_of('`'));
        continue;
      }
      if (!fence.empty()) {
        if (line == fence) fence.clear();
        continue;
      }
      std::string bare;  // Without code spans: what is left must be escaped.
      for (size_t i = 0; i < line.size();) {
        size_t run = std::min(line.find_first_not_of('`', i), line.size()) - i;
        if (run == 0 || (i > 0 && line[i - 1] == '\\')) {
          bare += line[i++];
          continue;
        }
        size_t close = line.find(std::string(run, '`'), i + run);
        ASSERT_NE(close, std::string::npos) << line;
        i = close + run;
      }
      EXPECT_FALSE(contains(bare, "<")) << line;
      EXPECT_FALSE(contains(bare, "[x](")) << line;
      EXPECT_NE(line, "# Injected");
    }
    EXPECT_TRUE(fence.empty()) << "a fence was left open by " << attack;
  }
}

TEST_F(ReportTest, TurnsHaveAColumnWhereThereAreAny) {
  write_made_up_run(dir_);
  EXPECT_FALSE(contains(markdown(), "Within"));
  Json results = read_json(dir_ / "results.json");
  results["rows"][0]["levels"]["all"]["correct_within"] = {{{"k", 1}, {"n", 8}}, {{"k", 5}, {"n", 8}}};
  write_file(dir_ / "results.json", results.dump());
  EXPECT_TRUE(contains(markdown(), "Within 2 turns"));
  EXPECT_TRUE(contains(markdown(), "62.5"));
  EXPECT_EQ(html_problem(html()), "");
}

TEST_F(ReportTest, EachMissingFileIsSaid) {
  for (const char* name :
       {"config.yaml", "env.json", "steps.jsonl", "verdicts.jsonl", "results.json", "examples.json"}) {
    write_made_up_run(dir_);
    EXPECT_FALSE(contains(markdown(), "not complete"));
    fs::remove(dir_ / name);
    EXPECT_TRUE(contains(markdown(), "This report is not complete"));
    EXPECT_TRUE(contains(replace_all(markdown(), "\\", ""), cat("- ", name, " is missing"))) << name;
    EXPECT_EQ(html_problem(html()), "") << name;
  }
  fs::remove_all(dir_);
  fs::create_directories(dir_);
  EXPECT_TRUE(contains(markdown(), "This run has no evaluation results."));
  EXPECT_EQ(html_problem(html()), "");
  fs::remove_all(dir_);
  EXPECT_THROW(write_report(dir_), Error);
}

TEST_F(ReportTest, CutAndDamagedFilesNeverStopTheReport) {
  Rng rng(17);
  for (const char* name :
       {"config.yaml", "env.json", "steps.jsonl", "verdicts.jsonl", "results.json", "examples.json"}) {
    write_made_up_run(dir_);
    std::string whole = read_file(dir_ / name);
    for (int trial = 0; trial < 40; ++trial) {
      std::string bytes = whole;
      if (trial % 2 == 0) {
        bytes.resize(static_cast<size_t>(rng.below(static_cast<int64_t>(whole.size()))));
      } else {
        for (int i = 0; i < 3; ++i) {
          bytes[static_cast<size_t>(rng.below(static_cast<int64_t>(whole.size())))] = static_cast<char>(rng.below(256));
        }
      }
      write_file(dir_ / name, bytes);
      ASSERT_NO_THROW({
        EXPECT_EQ(html_problem(html()), "") << name;
        EXPECT_FALSE(markdown().empty());
      }) << name
         << ", trial " << trial;
    }
  }
}

TEST_F(ReportTest, AnInterruptedEvaluationIsSaid) {
  Json results = read_json(dir_ / "results.json");
  results["rows"].erase(2);
  results["comparisons"] = Json::array();
  write_file(dir_ / "results.json", results.dump());
  EXPECT_TRUE(contains(markdown(), "has no row for rl, though 24 of its samples were verified"));
  std::ofstream(dir_ / "steps.jsonl", std::ios::app) << "{\"phase\": \"rl\", \"st";
  EXPECT_TRUE(contains(markdown(), "steps.jsonl: 1 of 11 lines left out, the first is line 11"));
}

TEST_F(ReportTest, ARewardedHarnessFaultIsShouted) {
  EXPECT_FALSE(contains(markdown(), "Do not trust"));
  Json line = to_json(made_up_verdict("x", "y", 1, Stage::kCompile, Outcome::kHarnessFault, "fork failed"));
  line["phase"] = "rl/round1";
  line["reward"] = 0.0;
  LineFile::open(dir_ / "verdicts.jsonl").write(line);
  EXPECT_TRUE(contains(markdown(), "**Do not trust this run:** 1 harness fault carried a reward."));
}

TEST_F(ReportTest, ResumedStepsCountOnceAndGapsAreSaid) {
  auto steps = LineFile::open(dir_ / "steps.jsonl");
  steps.write({{"phase", "sft"}, {"step", 8}, {"loss", 0.5}, {"something_new", "text"}});
  steps.write({{"phase", "sft"}, {"step", 9}, {"loss", nullptr}});
  RunData run = load_run(dir_);
  int sft = 0;
  for (const auto& step : run.steps) {
    sft += step.phase == "sft";
    if (step.phase == "sft" && step.step == 8) {
      EXPECT_EQ(step.get("loss"), 0.5);
    }
  }
  EXPECT_EQ(sft, 9);
  EXPECT_TRUE(contains(render_markdown(run), "1 step had no finite value."));
}

TEST_F(ReportTest, StepsInsideAnRlStepAreACurveButNoTimeOfTheirOwn) {
  std::string before = markdown();
  {
    auto steps = LineFile::open(dir_ / "steps.jsonl");
    for (int round = 1; round <= 2; ++round) {
      for (int step = 1; step <= 3; ++step) {
        steps.write({{"phase", cat("rl/round", round, "/update")},
                     {"step", step},
                     {"loss", 1.0 / (3 * round + step)},
                     {"seconds", 1000}});
      }
    }
  }
  std::string text = markdown();
  EXPECT_FALSE(contains(before, "RL: loss of each"));
  EXPECT_TRUE(contains(text, "From 0.250 at the first step to 0.111 at the last of 6 steps"));
  EXPECT_TRUE(contains(before, "Training steps took 3 m 46 s in all"));
  EXPECT_TRUE(contains(text, "Training steps took 3 m 46 s in all"));
  // Without the steps they belong to, they are all there is.
  std::string lines;
  for (const auto& line : split(read_file(dir_ / "steps.jsonl"), '\n')) {
    if (!contains(line, "\"phase\":\"rl\"")) lines += line + "\n";
  }
  write_file(dir_ / "steps.jsonl", lines);
  EXPECT_TRUE(contains(markdown(), "rl/round1/update"));
}

TEST_F(ReportTest, AbsurdNumbersAreLeftOut) {
  {
    auto steps = LineFile::open(dir_ / "steps.jsonl");
    steps.write({{"phase", "rl"}, {"step", 9007199254740993}, {"reward/mean", 0.5}});
    steps.write({{"phase", "rl"}, {"step", -1}, {"reward/mean", 0.5}});
    steps.write({{"phase", "rl"}, {"step", 3}, {"reward/mean", 1e300}, {"correct_rate", -1e-300}, {"seconds", -5}});
  }
  RunData run = load_run(dir_);
  EXPECT_FALSE(run.steps.back().get("reward/mean").has_value());
  std::string text = replace_all(render_markdown(run), "\\", "");
  EXPECT_TRUE(contains(text, "2 of 13 lines left out, the first is line 11 (\"step\" is out of range)"));
  std::string page = render_html(run);
  EXPECT_EQ(html_problem(page), "");
  EXPECT_FALSE(contains(page, "=\"nan\""));
}

TEST_F(ReportTest, SpeedupsAreShownWhenMeasured) {
  std::vector<EvalRecord> records(4);
  for (size_t i = 0; i < records.size(); ++i) {
    records[i].task_id = cat("t", i / 2);
    records[i].verdict = made_up_verdict(cat(i), records[i].task_id, 1, Stage::kTime, Outcome::kPass, "");
    records[i].verdict.speedup = i < 2 ? 2.0 : 0.5;
  }
  ResultsRow base = make_row("base", records), sft = make_row("sft", records);
  write_file(dir_ / "results.json",
             results_to_json({base, sft}, compare_levels("base", records, "sft", records)).dump());
  std::string text = markdown();
  EXPECT_TRUE(contains(text, "1.00x (2 of 4 faster)"));
  EXPECT_TRUE(contains(text, "fast_p: share of all samples"));
  EXPECT_TRUE(contains(text, "p = 1.2"));
  EXPECT_FALSE(contains(text, "Speed was not measured."));
  records[0].verdict.speedup.reset();
  write_file(dir_ / "results.json", results_to_json({make_row("base", records)}, {}).dump());
  EXPECT_FALSE(contains(markdown(), "fast_p")) << "a correct sample has no time";
  EXPECT_TRUE(contains(text, "no clear difference from the base model (0.0 points, the same on every task)"));
  EXPECT_TRUE(contains(text, "has no row for rl, though"));
}

TEST(AblationPage, DrawsEffectsWithTheirIntervals) {
  AblationPage page;
  page.name = "x";
  Effect wide, lone;
  wide.name = "wide", wide.difference = 2, wide.interval = {1, 3}, wide.blocks = 4, wide.tasks = 8;
  lone.name = "lone", lone.difference = -1, lone.interval = {-1, -1}, lone.blocks = 1, lone.tasks = 1;
  AblationPage::Measure measure;
  measure.words = "speed";
  measure.unit = "ms";
  measure.effects = {{wide, "wide it is"}, {lone, "lone it is"}};
  page.measures.push_back(measure);
  std::string html = ablation_html(page);
  EXPECT_EQ(html_problem(html), "");
  EXPECT_EQ(undefined_colours(html), "");
  EXPECT_EQ(count_of(html, "stroke-width:2;stroke:var(--c-line)"), 2);
  EXPECT_TRUE(contains(html, "+1.000 to +3.000"));
  EXPECT_FALSE(contains(html, "-1.000 to -1.000")) << "no interval from one block";
}

TEST(AblationPage, DrawsHeldOutTasksOverTheSteps) {
  AblationPage page;
  page.name = "x";
  page.axes = {"rate"};
  auto cell = [](const std::string& rate, int64_t seed, const std::string& status, std::map<int64_t, double> rates) {
    AblationPage::Cell one;
    one.setting = {rate};
    one.seed = seed;
    one.status = status;
    one.heldout = {{"2", std::move(rates)}};
    return one;
  };
  page.cells = {
      cell("low", 1, "done", {{0, .25}, {8, .3}, {16, .5}}), cell("high", 1, "done", {{0, .25}, {8, .5}, {16, .75}}),
      cell("high", 2, "done", {{0, .25}, {8, .7}, {16, .85}}), cell("high", 3, "failed", {{0, .25}, {8, .9}})};
  std::string text = ablation_markdown(page), html = ablation_html(page);
  EXPECT_TRUE(contains(text, "What RL did to each run"));
  EXPECT_TRUE(contains(text, "| high | 2 | done | 25.0 | 70.0 | 85.0 |"));
  EXPECT_TRUE(contains(text, "| high | 3 | failed | 25.0 | 90.0 | - |")) << "as far as it got";
  EXPECT_TRUE(contains(text, "|  | high | low |") || contains(text, "| step | high | low |"))
      << "the one that ends higher first:\n"
      << text;
  EXPECT_TRUE(contains(text, "| 16 | 80.000 | 50.000 |")) << "the mean of the seeds that are done:\n" << text;
  EXPECT_FALSE(contains(text, "level 1 while RL")) << "nothing is known of level 1";
  EXPECT_EQ(html_problem(html), "");
  EXPECT_EQ(undefined_colours(html), "");
  EXPECT_TRUE(contains(html, "text-anchor=\"start\">high</text>")) << "lines have a legend";
  // One that was evaluated after other steps, and ends earlier, has its line and its place.
  page.cells.push_back(cell("other", 1, "done", {{0, .25}, {4, .8}, {12, .9}}));
  text = ablation_markdown(page), html = ablation_html(page);
  EXPECT_TRUE(contains(text, "| step | other | high | low |")) << text;
  EXPECT_TRUE(contains(text, "| 4 | 80.000 | - | - |")) << text;
  EXPECT_EQ(count_of(html, "d=\"M"), 3) << "lines are whole";
  page.cells.pop_back();
  // More settings than colours: those that end highest.
  for (int i = 0; i < 8; ++i) page.cells.push_back(cell(cat("r", i), 1, "done", {{0, .1}, {8, .1}, {16, .01 * i}}));
  text = ablation_markdown(page);
  EXPECT_TRUE(contains(text, "of 10 settings the 7 that end highest"));
  EXPECT_TRUE(contains(text, "| step | high | low | r7 | r6 | r5 | r4 | r3 |")) << text;
}

TEST(VerdictsPage, HasARowForEachOutcomeAndStage) {
  std::string page = read_file(fs::path(source_dir()) / "docs/verdicts.md");
  std::string outcomes = page.substr(0, page.find("**Findings.**"));  // A rule may have an outcome's name.
  for (int o = 0; o < kOutcomeCount; ++o) {
    EXPECT_EQ(count_of(outcomes, cat("\n| `", to_string(static_cast<Outcome>(o)), "` |")), 1)
        << to_string(static_cast<Outcome>(o));
  }
  for (int s = 0; s < kStageCount; ++s) EXPECT_TRUE(contains(page, cat("`", to_string(static_cast<Stage>(s)), "`")));
}

TEST(ReportRoom, NeverSeesTorch) {
  std::string maps = read_file("/proc/self/maps");
  EXPECT_FALSE(contains(maps, "libtorch"));
  EXPECT_FALSE(contains(maps, "libc10"));
}

}  // namespace
}  // namespace tritonrl::report_test
