// SPDX-License-Identifier: Apache-2.0
#include "report/run_data.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "base/error.h"
#include "base/text.h"

namespace tritonrl {

namespace fs = std::filesystem;

namespace {

// Beyond these a number is damage, not data, and would make charts and tables unreadable.
constexpr double kLargestStep = 1e12, kLargestValue = 1e15;

// The text of a file of the run; "" with a problem noted when it is not there.
std::string read_part(RunData& run, const fs::path& dir, const char* name, const char* loss) {
  std::error_code ignored;
  if (!fs::exists(dir / name, ignored)) {
    run.problems.push_back(cat(name, " is missing: ", loss));
    return "";
  }
  try {
    return read_file(dir / name);
  } catch (const Error& e) {
    run.problems.push_back(cat(name, " cannot be read (", e.message(), "): ", loss));
    return "";
  }
}

Json read_json_part(RunData& run, const fs::path& dir, const char* name, const char* loss) {
  std::string text = read_part(run, dir, name, loss);
  if (text.empty()) return nullptr;
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_discarded()) return json;
  run.problems.push_back(cat(name, " is not valid JSON, perhaps cut off: ", loss));
  return nullptr;
}

// Calls fn for each line that is a JSON object; says how many lines were not, and which was the first.
void read_lines(RunData& run, const fs::path& dir, const char* name, const char* loss,
                const std::function<void(int64_t, const Json&)>& fn) {
  std::string text = read_part(run, dir, name, loss);
  int64_t number = 0, bad = 0, first_bad = 0;
  std::string why;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line(text.data() + begin, end - begin);
    begin = end + 1;
    ++number;
    if (trim(line).empty()) continue;
    std::string problem = "not a JSON object";
    Json json = Json::parse(line, nullptr, false);
    if (json.is_object()) {
      try {
        fn(number, json);
        continue;
      } catch (const Error& e) {
        problem = e.message();
      }
    }
    if (bad++ == 0) first_bad = number, why = problem;
  }
  if (bad > 0) {
    run.problems.push_back(
        cat(name, ": ", bad, " of ", number, " lines left out, the first is line ", first_bad, " (", why, ")"));
  }
}

void load_steps(RunData& run, const fs::path& dir) {
  std::map<std::pair<std::string, int64_t>, size_t> seen;
  auto add = [&](int64_t number, const Json& json) {
    StepLine line;
    if (auto it = json.find("phase"); it != json.end() && it->is_string()) line.phase = it->get<std::string>();
    if (line.phase.empty()) throw usage_error("no \"phase\"");
    line.step = number;
    if (auto it = json.find("step"); it != json.end() && it->is_number()) {
      double step = it->get<double>();
      if (!(step >= 0 && step <= kLargestStep)) throw usage_error("\"step\" is out of range");
      line.step = static_cast<int64_t>(step);
    }
    for (const auto& [key, value] : json.items()) {
      if (key == "step" || !value.is_number()) continue;
      double number = value.get<double>();
      if (std::abs(number) <= kLargestValue) line.values[key] = number;
    }
    auto [it, is_new] = seen.try_emplace({line.phase, line.step}, run.steps.size());
    if (is_new) {
      run.steps.push_back(std::move(line));
    } else {
      run.steps[it->second] = std::move(line);  // A resumed run did this step again.
    }
  };
  read_lines(run, dir, "steps.jsonl", "no loss, reward or time curves", add);
}

void load_verdicts(RunData& run, const fs::path& dir) {
  std::map<std::string, size_t> index;
  std::set<std::string> missing;
  auto add = [&](int64_t, const Json& json) {
    Verdict verdict = verdict_from_json(json, "");
    auto phase_field = json.find("phase");
    std::string phase =
        phase_field != json.end() && phase_field->is_string() ? phase_field->get<std::string>() : "unnamed";
    auto [it, is_new] = index.try_emplace(phase, run.verdicts.size());
    if (is_new) run.verdicts.push_back({phase, 0, {}, 0, 0, 0});
    PhaseVerdicts& sum = run.verdicts[it->second];
    ++sum.verdicts;
    ++sum.outcomes[to_string(verdict.outcome)];
    if (auto reward = json.find("reward"); reward != json.end() && reward->is_number()) {
      ++sum.rewarded;
      sum.reward_sum += reward->get<double>();
      sum.rewarded_faults += verdict.is_harness_fault();
    }
    if (verdict.path != VerifyPath::kNone) ++run.paths[name_of(verdict.path)];
    missing.insert(verdict.sandbox_missing.begin(), verdict.sandbox_missing.end());
    for (const auto& stage : verdict.stages)
      run.stage_seconds[static_cast<size_t>(stage.stage)].push_back(stage.seconds);
  };
  read_lines(run, dir, "verdicts.jsonl", "no counts of every verified candidate", add);
  run.sandbox_missing.assign(missing.begin(), missing.end());
}

void load_results(RunData& run, const fs::path& dir) {
  Json json = read_json_part(run, dir, "results.json", "no evaluation results");
  if (json.is_null()) return;
  auto list = [&](const char* name) {
    auto it = json.is_object() ? json.find(name) : json.end();
    return it != json.end() && it->is_array() ? *it : Json::array();
  };
  auto lenient = [&](auto&& read) {
    try {
      read();
    } catch (const Error& e) {
      run.problems.push_back(cat(e.where(), ": ", e.message(), ": that entry is left out"));
    }
  };
  for (const Json& row : list("rows")) {
    lenient([&] { run.rows.push_back(results_row_from_json(row, "results.json")); });
  }
  for (const Json& comparison : list("comparisons")) {
    lenient([&] { run.comparisons.push_back(comparison_from_json(comparison, "results.json")); });
  }
  if (list("rows").empty()) run.problems.push_back("results.json holds no rows: no evaluation results");
}

void load_examples(RunData& run, const fs::path& dir) {
  Json json = read_json_part(run, dir, "examples.json", "no example kernels");
  auto load = [&](const char* name, std::optional<CandidateExample>& slot) {
    auto it = json.is_object() ? json.find(name) : json.end();
    if (it == json.end() || it->is_null()) return;
    try {
      CandidateExample example{verdict_from_json(*it, "examples.json"), ""};
      if (auto source = it->find("task_source"); source != it->end() && source->is_string()) {
        example.task_source = source->get<std::string>();
      }
      slot = std::move(example);
    } catch (const Error& e) {
      run.problems.push_back(cat("examples.json: the ", name, " example cannot be read (", e.message(), ")"));
    }
  };
  load("passed", run.passed);
  load("failed", run.failed);
}

}  // namespace

std::optional<double> StepLine::get(const std::string& key) const {
  auto it = values.find(key);
  return it == values.end() ? std::nullopt : std::optional<double>(it->second);
}

RunData load_run(const fs::path& dir) {
  std::error_code ignored;
  if (!fs::is_directory(dir, ignored)) {
    throw usage_error("is no run directory", dir.string(), "give the folder that holds results.json and steps.jsonl");
  }
  RunData run;
  fs::path whole = fs::weakly_canonical(dir);
  run.name = whole.filename().empty() ? whole.string() : whole.filename().string();
  run.config = read_part(run, dir, "config.yaml", "the settings of this run are not known");
  run.env = read_json_part(run, dir, "env.json", "commit, versions and machine are not known");
  load_results(run, dir);
  load_steps(run, dir);
  load_verdicts(run, dir);
  load_examples(run, dir);
  try {
    run.training_set = load_training_set(dir);
  } catch (const Error& e) {
    run.problems.push_back(cat(kTrainingSetFile, " cannot be read (", e.message(), ")"));
  }
  for (const char* model : {"base", "sft", "rl"}) {
    bool found =
        std::any_of(run.rows.begin(), run.rows.end(), [&](const ResultsRow& row) { return row.model == model; });
    if (found || run.rows.empty()) continue;
    int64_t seen = 0;
    for (const auto& phase : run.verdicts) seen += phase.phase == cat("eval/", model) ? phase.verdicts : 0;
    run.problems.push_back(
        cat("results.json has no row for ", model,
            seen > 0 ? cat(", though ", seen, " of its samples were verified before the run ended") : ""));
  }
  return run;
}

}  // namespace tritonrl
