// SPDX-License-Identifier: Apache-2.0
// Sections about the training steps: loss, rewards, time.
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <limits>
#include <map>
#include <set>

#include "base/text.h"
#include "report/sections.h"

namespace tritonrl::reporting {

namespace {

constexpr size_t kMaxPoints = 400;  // A chart's line; more steps are averaged.
constexpr size_t kMaxRows = 20;     // A table of steps.
constexpr double kGap = std::numeric_limits<double>::quiet_NaN();

std::vector<const StepLine*> steps_of(const RunData& run, const std::string& phase) {
  std::vector<const StepLine*> steps;
  for (const auto& line : run.steps) {
    if (line.phase == phase) steps.push_back(&line);
  }
  std::stable_sort(steps.begin(), steps.end(), [](const auto* a, const auto* b) { return a->step < b->step; });
  return steps;
}

std::vector<double> values_of(const std::vector<const StepLine*>& steps, const std::string& key) {
  std::vector<double> values;
  for (const auto* step : steps) {
    if (auto value = step->get(key)) values.push_back(*value);
  }
  return values;
}

double sum_of(const std::vector<const StepLine*>& steps, const std::string& key) {
  double sum = 0;
  for (double value : values_of(steps, key)) sum += value;
  return sum;
}

// A line chart of one key over steps; nothing when no step has it.
void add_curve(Document& document, const std::vector<const StepLine*>& steps, const std::string& key,
               const std::string& title, const std::string& y_label) {
  auto values = values_of(steps, key);
  if (values.empty()) return;
  Chart chart;
  chart.title = title;
  chart.x_label = "step";
  chart.y_label = y_label;
  size_t bucket = (steps.size() + kMaxPoints - 1) / kMaxPoints;
  Series series{y_label, "c-line", {}, {}};
  for (size_t i = 0; i < steps.size(); i += bucket) {
    std::vector<const StepLine*> part(steps.begin() + static_cast<std::ptrdiff_t>(i),
                                      steps.begin() + static_cast<std::ptrdiff_t>(std::min(i + bucket, steps.size())));
    auto here = values_of(part, key);
    series.x.push_back(static_cast<double>(part.front()->step));
    series.y.push_back(here.empty() ? kGap : mean(here));
  }
  chart.series.push_back(std::move(series));
  chart.summary = cat("From ", fixed(values.front(), 3), " at the first step to ", fixed(values.back(), 3),
                      " at the last of ", plural(static_cast<int64_t>(steps.size()), "step"), "; lowest ",
                      fixed(*std::min_element(values.begin(), values.end()), 3), ", highest ",
                      fixed(*std::max_element(values.begin(), values.end()), 3), ".");
  if (bucket > 1) chart.summary += cat(" Each point is the mean of ", bucket, " steps.");
  if (values.size() < steps.size()) {
    chart.summary +=
        cat(" ", plural(static_cast<int64_t>(steps.size() - values.size()), "step"), " had no finite value.");
  }
  document.blocks.push_back(std::move(chart));
}

// What evaluations between the steps brought, a line a level; nothing where there was none in between.
void add_heldout(Document& document, const RunData& run) {
  std::map<int64_t, const StepLine*> by_step;  // Of the two before RL the later one, its start.
  for (const StepLine* line : steps_of(run, "eval")) by_step[line->step] = line;
  if (by_step.size() < 3) return;
  Chart chart;
  chart.title = "Held-out tasks during RL";
  chart.x_label = "step";
  chart.y_label = "share correct";
  for (const char* level : {"1", "2"}) {
    Series series{cat("level ", level), *level == '1' ? "c-line" : "c-orange", {}, {}};
    for (const auto& [step, line] : by_step) {
      auto rate = line->get(cat("level", level, "/correct_rate"));
      if (!rate) continue;
      series.x.push_back(static_cast<double>(step));
      series.y.push_back(*rate);
    }
    if (series.x.empty()) continue;
    chart.summary +=
        cat(chart.summary.empty() ? "" : " ", "Level ", level, ": from ", fixed(100 * series.y.front(), 1),
            " % correct ", series.x.front() > 0 ? cat("behind step ", fixed(series.x.front(), 0)) : "before RL", " to ",
            fixed(100 * series.y.back(), 1), " % behind step ", fixed(series.x.back(), 0), ".");
    chart.series.push_back(std::move(series));
  }
  if (!chart.series.empty()) document.blocks.push_back(std::move(chart));
}

Cell number_cell(const std::optional<double>& value, int digits) { return cell(value ? fixed(*value, digits) : "-"); }

}  // namespace

void add_sft(const RunData& run, Document& document) {
  auto steps = steps_of(run, "sft");
  if (steps.empty()) return;
  document.blocks.push_back(Heading{2, "Supervised fine-tuning"});
  double tokens = sum_of(steps, "tokens"), seconds = sum_of(steps, "seconds");
  std::string facts = cat(plural(static_cast<int64_t>(steps.size()), "step"));
  if (tokens > 0) facts += cat(", ", fixed(tokens, 0), " tokens");
  if (seconds > 0) facts += cat(" in ", human_seconds(seconds));
  if (tokens > 0 && seconds > 0) facts += cat(" (", fixed(tokens / seconds, 0), " tokens/s)");
  auto rates = values_of(steps, "lr");
  if (!rates.empty()) {
    std::ostringstream peak;
    peak << std::setprecision(3) << *std::max_element(rates.begin(), rates.end());
    facts += cat(", peak learning rate ", peak.str());
  }
  document.say(facts + ".");
  add_curve(document, steps, "loss", "SFT loss", "loss (nats per answer token)");
}

void add_rl(const RunData& run, Document& document) {
  auto steps = steps_of(run, "rl");
  if (steps.empty()) return;
  document.blocks.push_back(Heading{2, "Reinforcement learning"});
  double rollouts = sum_of(steps, "rollouts"), kept = sum_of(steps, "kept"), seconds = sum_of(steps, "seconds");
  std::string facts = plural(static_cast<int64_t>(steps.size()), "step");
  if (rollouts > 0) facts += cat(", ", fixed(rollouts, 0), " rollouts, ", fixed(kept, 0), " kept for training");
  if (seconds > 0) facts += cat(", ", human_seconds(seconds));
  document.say(facts + ".");
  add_curve(document, steps, "reward/mean", "RL: mean reward per step", "mean reward");
  add_curve(document, steps, "correct_rate", "RL: share of rollouts that are correct", "share correct");
  add_curve(document, steps, "turns/correct_best", "RL: share of conversations with a correct answer", "share correct");
  add_heldout(document, run);
  std::vector<StepLine> updates;  // The optimizer's steps of all rounds, one after the other.
  for (const auto& line : run.steps) {
    if (!line.phase.starts_with("rl/") || !line.get("loss")) continue;
    updates.push_back(line);
    updates.back().step = static_cast<int64_t>(updates.size());
  }
  std::vector<const StepLine*> update_steps;
  for (const auto& line : updates) update_steps.push_back(&line);
  add_curve(document, update_steps, "loss", "RL: loss of each optimizer step, all rounds", "loss");

  Table table;
  auto shown = evenly_spaced(steps, kMaxRows);
  table.caption = "RL steps";
  if (shown.size() < steps.size()) table.caption += cat(" (", shown.size(), " of ", steps.size(), ", evenly spaced)");
  table.columns = {
      {"Step", true}, {"Rollouts", true}, {"Kept", true},   {"Correct", true}, {"Reward", true},
      {"Loss", true}, {"Rollout", true},  {"Verify", true}, {"Update", true},  {"Most frequent failures", false}};
  for (const auto* step : shown) {
    std::map<std::string, int64_t> failures;
    for (const auto& [key, value] : step->values) {
      const std::string prefix = "verify/outcome/";
      if (key.starts_with(prefix) && value > 0) failures[key.substr(prefix.size())] = std::llround(value);
    }
    failures.erase("pass");
    Cell rollout_count = number_cell(step->get("rollouts"), 0);
    if (auto it = failures.find("harness_fault"); it != failures.end()) {  // Ours, not the candidates'.
      rollout_count.note = plural(it->second, "harness fault");
      failures.erase(it);
    }
    auto seconds_cell = [&](const char* key) {
      auto value = step->get(cat("time/phase/", key));
      return cell(value ? human_seconds(*value) : "-");
    };
    auto correct = step->get("correct_rate"), deviation = step->get("reward/std");
    Cell reward = number_cell(step->get("reward/mean"), 3);
    if (deviation) reward.note = cat("sd ", fixed(*deviation, 3));
    table.rows.push_back({cell(cat(step->step)), rollout_count, number_cell(step->get("kept"), 0),
                          cell(correct ? percent(*correct) : "-"), reward, number_cell(step->get("loss"), 3),
                          seconds_cell("rollout"), seconds_cell("verify"), seconds_cell("update"),
                          cell(failures.empty() ? "-" : top_counts(failures, 3))});
  }
  document.blocks.push_back(std::move(table));
}

void add_time(const RunData& run, Document& document) {
  // Seconds per part, in order of first appearance: what a step breaks down (time/phase/...), then the rest of it.
  std::vector<std::pair<std::string, double>> parts;
  auto add = [&](const std::string& name, double seconds) {
    auto it = std::find_if(parts.begin(), parts.end(), [&](const auto& part) { return part.first == name; });
    if (it == parts.end()) it = parts.insert(parts.end(), {name, 0.0});
    it->second += seconds;
  };
  // "rl/round1/update" is a closer look at steps of "rl": its seconds are in those already.
  auto is_detail = [&](const std::string& phase) {
    size_t slash = phase.find('/');
    return slash != std::string::npos && !steps_of(run, phase.substr(0, slash)).empty();
  };
  std::map<std::string, bool> details;
  for (const auto& step : run.steps) details.try_emplace(step.phase, false);
  for (auto& [phase, detail] : details) detail = is_detail(phase);
  double total = 0;
  for (const auto& step : run.steps) {
    if (details.at(step.phase)) continue;
    double inside = 0;
    auto part = [&](const std::string& name, std::optional<double> seconds) {
      if (seconds) add(cat(step.phase, ": ", name), *seconds), inside += *seconds;
    };
    // Their order in a step; others after, by name. Verification beside sampling takes no time of its own.
    auto verify = step.get("time/phase/verify"), alone = step.get("time/phase/verify_alone");
    auto rollout = step.get("time/phase/rollout");
    if (step.get("time/wait_rollout")) rollout = step.get("time/wait_rollout"), alone = step.get("time/wait_verify");
    part("rollout", rollout);
    if (alone && *alone < verify.value_or(0)) {
      part("verify, behind sampling", alone);
    } else {
      part("verify", verify);
    }
    part("update", step.get("time/phase/update"));
    for (const auto& [key, value] : step.values) {
      const std::string prefix = "time/phase/";
      std::string name = key.starts_with(prefix) ? key.substr(prefix.size()) : "";
      const std::set<std::string> known = {"", "rollout", "verify", "verify_alone", "update"};
      if (!known.count(name)) part(name, value);
    }
    double rest = step.get("seconds").value_or(0) - inside;
    if (rest > 0.01 * inside) add(inside > 0 ? step.phase + ": other" : step.phase, rest);
    total += inside + std::max(0.0, rest);
  }
  bool staged =
      std::any_of(run.stage_seconds.begin(), run.stage_seconds.end(), [](const auto& s) { return !s.empty(); });
  if (parts.empty() && !staged) return;
  document.blocks.push_back(Heading{2, "Where the time went"});
  if (!parts.empty()) {
    Chart chart;
    chart.kind = Chart::Kind::kBars;
    chart.title = "Time per phase";
    chart.x_label = "seconds";
    chart.unit = " s";
    Series series{"seconds", "c-line-fill", {}, {}};
    for (const auto& [name, seconds] : parts) {
      chart.categories.push_back(name);
      series.y.push_back(seconds);
    }
    chart.series.push_back(std::move(series));
    auto longest =
        std::max_element(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    chart.summary =
        cat("Training steps took ", human_seconds(total), " in all; the largest part went to ", longest->first, " (",
            human_seconds(longest->second), "). Evaluation is not in this chart unless it wrote steps.");
    document.blocks.push_back(std::move(chart));
  }
  if (!staged) return;
  Table table;
  table.caption = "Verification: wall clock per stage, all candidates";
  table.columns = {{"Stage", false}, {"Runs", true}, {"Median", true}, {"95th percentile", true}, {"Sum", true}};
  for (int s = 0; s < kStageCount; ++s) {
    const auto& seconds = run.stage_seconds[static_cast<size_t>(s)];
    if (seconds.empty()) continue;
    auto ms = [](double value) {
      return value < 1 ? fixed(value * 1000, value < 0.01 ? 2 : 0) + " ms" : human_seconds(value);
    };
    double sum = mean(seconds) * static_cast<double>(seconds.size());
    table.rows.push_back({{{code(to_string(static_cast<Stage>(s)))}, ""},
                          cell(cat(seconds.size())),
                          cell(ms(percentile(seconds, 50))),
                          cell(ms(percentile(seconds, 95))),
                          cell(ms(sum))});
  }
  document.blocks.push_back(std::move(table));
}

}  // namespace tritonrl::reporting
