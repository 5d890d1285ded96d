// SPDX-License-Identifier: Apache-2.0
// Runs every candidate under tests/cases/ through the real verifier and holds its verdict against the file's head:
//
//   # task: tests/cases/tasks/NAME.py
//   # expect: OUTCOME @STAGE [or OUTCOME @STAGE]
//   # why: one line
//   # expect-gpu: OUTCOME @STAGE       only where a replay on a GPU ends otherwise; what passes does so at `time` there
//   # expect-fp32: OUTCOME @STAGE      with verify.tolerance: fp32
//   # expect-small-inputs: OUTCOME @STAGE  with the cases `small` and `magnitudes` besides
//   # tiny: ROWS=2 COLS=50             the task has these sizes as well, and tiny_run is on them
//   # speedup-below: X                 on a GPU, what is measured
//
// A case is a file; nothing else needs to be written for a new one. TRITONRL_CASE=text runs those whose path holds it.
// The verdict is the same whether the first failure is the last stage or every stage is run: ctest runs both, apart.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/files/json.h"
#include "base/log.h"
#include "base/process/build_paths.h"
#include "base/text.h"
#include "verify/feedback.h"
#include "verify/trace/target_gpu.h"
#include "verify/verifier.h"

namespace tritonrl::cases_test {
namespace {

namespace fs = std::filesystem;

struct Case {
  std::string name;    // "cheat/network".
  std::string expect;  // "runtime_error @compile".
  std::string expect_gpu;
  std::string why;
  double speedup_below = 0;  // 0 = whatever it is.
  Candidate candidate;
};

// The value of "# key: value" among the first lines; throws Error (usage).
std::string head(const std::string& text, const std::string& key, const fs::path& path) {
  auto lines = split(text, '\n');
  for (size_t i = 0; i < std::min<size_t>(lines.size(), 5); ++i) {
    if (lines[i].rfind(cat("# ", key, ":"), 0) == 0) return trim(std::string_view(lines[i]).substr(key.size() + 3));
  }
  throw usage_error(cat("a case lacks \"# ", key, ":\" in its first lines"), path.string());
}

std::vector<Case> load_cases(const fs::path& root) {
  std::vector<Case> cases;
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(root / "tests" / "cases")) {
    bool is_case = entry.path().extension() == ".py" && entry.path().parent_path().filename() != "tasks";
    if (is_case) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  const char* only = std::getenv("TRITONRL_CASE");
  for (const fs::path& file : files) {
    std::string text = read_file(file);
    Case one;
    one.name = (file.parent_path().filename() / file.stem()).string();
    if (only && one.name.find(only) == std::string::npos) continue;
    one.expect = head(text, "expect", file);
    bool differs = text.find("\n# expect-gpu:") != std::string::npos;
    one.expect_gpu = differs                          ? head(text, "expect-gpu", file)
                     : one.expect == "pass @full_run" ? "pass @time"
                                                      : one.expect;
    one.why = head(text, "why", file);
    if (text.find("\n# speedup-below:") != std::string::npos) {
      one.speedup_below = std::stod(head(text, "speedup-below", file));
    }
    one.candidate.id = one.name;
    one.candidate.task = task_from_python(root / head(text, "task", file));
    if (text.find("\n# tiny:") != std::string::npos) {
      for (const std::string& size : split(head(text, "tiny", file), ' ')) {
        one.candidate.task.tiny[size.substr(0, size.find('='))] = std::stoll(size.substr(size.find('=') + 1));
      }
    }
    one.candidate.text = text;
    one.candidate.is_code = true;
    cases.push_back(std::move(one));
  }
  return cases;
}

// The cases of the file's own task, and inputs that are small.
class SmallInputs : public CaseSource {
 public:
  std::vector<CaseSpec> cases(const Task& task) const override {
    std::vector<CaseSpec> out = OriginalCases(1).cases(task);
    for (const char* values : {"small", "magnitudes"}) {
      CaseSpec spec{values};
      spec.values = values;
      spec.trace = out[0].name;
      spec.additional = true;
      out.push_back(spec);
    }
    return out;
  }
};

// Files whose head has `key`, verified with these settings instead.
void hold_against(const std::string& key, const VerifyConfig& config, const VerifySeams& seams) {
  std::vector<Case> cases = load_cases(source_dir());
  std::erase_if(cases,
                [&](const Case& one) { return one.candidate.text.find(cat("\n# ", key, ":")) == std::string::npos; });
  ASSERT_GE(cases.size(), 4u);
  std::vector<Candidate> candidates;
  for (const Case& one : cases) candidates.push_back(one.candidate);
  auto verifier = Verifier::open(config, seams);
  auto verdicts = verifier->verify(candidates);
  for (size_t i = 0; i < cases.size(); ++i) {
    std::string expect = head(cases[i].candidate.text, key, cases[i].name), got = to_string(verdicts[i].outcome);
    if (!verdicts[i].correct()) got += cat(" @", to_string(verdicts[i].stopped_at));
    EXPECT_EQ(got, verdicts[i].correct() ? expect.substr(0, expect.find(' ')) : expect)
        << cases[i].name << ": " << verdicts[i].reason();
    EXPECT_EQ(verdicts[i].tolerance, config.tolerance) << cases[i].name;
  }
}

void hold_against_files(std::shared_ptr<const StageOrder> order) {
  std::vector<Case> cases = load_cases(source_dir());
  ASSERT_FALSE(cases.empty());
  VerifyConfig config;
  config.memory_mb = 1024;
  VerifySeams seams;
  seams.order = std::move(order);
  std::unique_ptr<Verifier> verifier = Verifier::open(config, seams);
  std::vector<Candidate> candidates;
  for (const Case& one : cases) candidates.push_back(one.candidate);
  double start = now_s();
  std::vector<Verdict> verdicts = verifier->verify(candidates);
  double seconds = now_s() - start;
  std::map<Stage, std::pair<double, int>> time;
  int secrets = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    const Verdict& verdict = verdicts[i];
    std::string got = cat(to_string(verdict.outcome), " @", to_string(verdict.stopped_at));
    const std::string& expect = verifier->gpus() ? cases[i].expect_gpu : cases[i].expect;
    EXPECT_NE(cat(" or ", expect, " or ").find(cat(" or ", got, " or ")), std::string::npos)
        << got << " instead of " << expect << ": " << cases[i].name << " (" << cases[i].why
        << "): " << verdict.reason();
    if (cases[i].speedup_below > 0 && verifier->gpus()) {
      EXPECT_LT(verdict.timing ? verdict.timing->speedup : 1e9, cases[i].speedup_below) << cases[i].name;
    }
    if (!verdict.is_harness_fault()) {
      std::string said = feedback_text(public_part(verdict), 4000), value = verdict.finding().secret.expected;
      EXPECT_EQ(said, printable(said)) << cases[i].name;
      EXPECT_FALSE(said.empty()) << cases[i].name;
      if (value.find('.') != std::string::npos) {
        ++secrets;
        EXPECT_EQ(said.find(value), std::string::npos) << cases[i].name << ": " << said;
      }
    }
    for (const StageResult& stage : verdict.stages) {
      bool endless = stage.stage == Stage::kCompile && stage.outcome() == Outcome::kTimeout;
      EXPECT_TRUE(!endless || stage.own_s.value_or(1e9) < 10) << cases[i].name;
      std::string message = human_text(stage.finding);
      EXPECT_EQ(message.find(source_dir()), std::string::npos) << cases[i].name << ": " << message;
      EXPECT_EQ(message, printable(message)) << cases[i].name;
      if (stage.outcome() == Outcome::kTimeout) continue;
      time[stage.stage].first += stage.seconds;
      time[stage.stage].second += 1;
    }
  }
  EXPECT_TRUE(secrets > 0 || std::getenv("TRITONRL_CASE"));
  std::fprintf(stderr, "%zu cases in %.1f s (%.2f/s on %d workers)\n", cases.size(), seconds,
               static_cast<double>(cases.size()) / seconds, static_cast<int>(verifier->workers()));
  for (const auto& [stage, sum] : time) {
    std::fprintf(stderr, "  %-9s mean %.1f ms of %d\n", to_string(stage), 1e3 * sum.first / sum.second, sum.second);
  }
}

TEST(Cases, EveryVerdictIsAsItsFileSays) { hold_against_files(std::make_shared<Staged>()); }
TEST(CasesThroughEveryStage, EveryVerdictIsAsItsFileSays) { hold_against_files(std::make_shared<EveryStage>()); }

// tl.dot of float32 is TF32 unless it says otherwise.
TEST(Cases, StrictToleranceRejectsWhatRoundsProducts) {
  VerifyConfig config;
  config.tolerance = Tolerance::kFp32;
  hold_against("expect-fp32", config, {});
}
TEST(Cases, SmallInputsShowWhatTheToleranceOfProductsHides) {
  VerifySeams seams;
  seams.cases = std::make_shared<SmallInputs>();
  hold_against("expect-small-inputs", {}, seams);
}

// Kernels of the right answers compile for every GPU, and host code is told of that one.
TEST(Cases, RightAnswersCompileForEveryArchitecture) {
  std::vector<Candidate> candidates;
  for (const Case& one : load_cases(source_dir())) {
    if (one.name.rfind("honest/", 0) == 0) candidates.push_back(one.candidate);
  }
  for (int64_t arch : known_architectures()) {
    VerifyConfig config;
    if (arch == config.arch) continue;  // All tests are for that.
    config.arch = arch;
    config.gpus = 0;
    config.skip_stages = {Stage::kTinyRun, Stage::kFullRun};
    auto verdicts = Verifier::open(config)->verify(candidates);
    for (const Verdict& verdict : verdicts) {
      EXPECT_TRUE(verdict.correct()) << "sm_" << arch << ": " << verdict.candidate_id << ": " << verdict.reason();
    }
  }
}

// Every task under tests/cases can tell right from wrong.
TEST(Cases, TasksAreOfUse) {
  auto verifier = Verifier::open({});
  for (const auto& entry : fs::directory_iterator(fs::path(source_dir()) / "tests" / "cases" / "tasks")) {
    if (entry.path().extension() != ".py") continue;
    EXPECT_EQ(verifier->lint(task_from_python(entry.path())), "") << entry.path().filename();
  }
}

}  // namespace
}  // namespace tritonrl::cases_test
