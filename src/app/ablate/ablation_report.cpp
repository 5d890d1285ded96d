// SPDX-License-Identifier: Apache-2.0
// What the cells of an ablation came to.
#include <cmath>
#include <set>

#include "app/ablate/ablation.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "report/ablation_page.h"
#include "rollout/evaluation.h"

namespace tritonrl {
namespace {

namespace fs = std::filesystem;

struct Measure {
  const char *key, *words, *unit;
  double scale;      // From the value to what is shown.
  bool more_better;  // Else less.
};
constexpr Measure kMeasures[] = {
    {"correct_1", "correct on level 1", "points", 100, true},
    {"correct_2", "correct on level 2", "points", 100, true},
    {"log_speedup", "speedup of correct kernels", "%", 100, true},
    {"verify_seconds", "verifying a candidate while training", "ms", 1000, false},
    {"false_accepts", "wrongly accepted of what training accepted", "points", 100, false},
};

void add_evaluation(const fs::path& folder, CellResult* result) {
  std::map<std::string, std::map<std::string, std::pair<double, double>>> sums;  // Measure, task -> sum and count.
  std::vector<EvalRecord> records = load_records(folder / "eval_rl.jsonl");
  for (const char* start : {"sft", "base"}) {
    fs::path file = folder / cat("eval_", start, ".jsonl");
    if (!fs::exists(file)) continue;
    result->gains = compare_levels(start, load_records(file), "rl", records);
    break;
  }
  for (const EvalRecord& record : records) {
    if (record.turn > 1 || record.verdict.is_harness_fault()) continue;
    auto add = [&](const std::string& measure, double value) {
      auto& [sum, count] = sums[measure][record.task_id];
      sum += value;
      count += 1;
    };
    add(cat("correct_", record.level), record.verdict.correct() ? 1 : 0);
    if (record.verdict.correct() && record.verdict.speedup) add("log_speedup", std::log(*record.verdict.speedup));
  }
  for (const auto& [measure, tasks] : sums) {
    for (const auto& [task, sum] : tasks) result->measures[measure][task] = sum.first / sum.second;
  }
}

void add_heldout(const fs::path& folder, CellResult* result) {
  if (!fs::exists(folder / "steps.jsonl")) return;
  try {
    for_each_json_line(folder / "steps.jsonl", [&](int64_t, const Json& line) {
      if (line.value("phase", "") != "eval") return;
      for (const char* level : {"1", "2"}) {
        auto rate = line.find(cat("level", level, "/correct_rate"));
        // Of the two before RL the later one, its start.
        if (rate != line.end()) result->heldout[level][line.value("step", int64_t{0})] = rate->get<double>();
      }
    });
  } catch (const std::exception& error) {  // A line cut short in a cell that was stopped is no reason to show none.
    log_warn(cat(folder.string(), ": ", error.what()));
  }
}

void add_training(const fs::path& folder, CellResult* result) {
  double seconds = 0, rollouts = 0;
  for_each_json_line(folder / "steps.jsonl", [&](int64_t, const Json& line) {
    if (line.value("phase", "") != "rl") return;
    seconds += line.value("time/phase/verify", 0.0);
    rollouts += line.value("rollouts", 0.0) + line.value("harness_faults", 0.0);
  });
  if (rollouts > 0) result->measures["verify_seconds"][""] = seconds / rollouts;
  Json audit = read_json(folder / "state.json").value("phases", Json::object()).value("audit", Json());
  if (audit.is_object() && audit.value("accepted", 0) > 0) {
    result->measures["false_accepts"][""] = audit.at("rejected").get<double>() / audit.at("accepted").get<double>();
  }
}

std::string sentence_of(const Measure& measure, const Effect& effect) {
  if (effect.blocks == 0) return cat(effect.name, ": ", measure.words, " could not be compared.");
  auto shown = [&](double value) {
    std::string text = fixed(measure.scale * value, measure.scale > 1 ? 1 : 3);
    return (value > 0 ? "+" : "") + text;
  };
  if (effect.blocks == 1) {
    return cat(effect.name, ": ", shown(effect.difference), " ", measure.unit, " on ", measure.words,
               " in one block of runs, too little to tell chance from effect.");
  }
  std::string numbers = cat(shown(effect.difference), " ", measure.unit, " (", shown(effect.interval.low), " to ",
                            shown(effect.interval.high), ")");
  if (!effect.measurable()) return cat(effect.name, ": no measurable effect on ", measure.words, ", ", numbers, ".");
  bool better = (effect.difference > 0) == measure.more_better;
  return cat(effect.name, better ? " improves " : " worsens ", measure.words, ": ", numbers, ".");
}

}  // namespace

std::vector<CellResult> collect(const Ablation& ablation) {
  std::vector<CellResult> results;
  for (const AblationCell& cell : ablation.cells) {
    CellResult result{&cell, "missing", {}, {}, {}};
    add_heldout(cell.folder, &result);
    fs::path rollouts = cell.folder / "rollouts";
    if (fs::exists(cell.folder / "results.json") && fs::exists(rollouts / "eval_rl.jsonl")) {
      result.status = "done";
      add_evaluation(rollouts, &result);
      add_training(cell.folder, &result);
    } else if (fs::exists(cell.folder.string() + ".out")) {
      result.status = "failed";
    }
    results.push_back(std::move(result));
  }
  return results;
}

std::vector<MeasuredEffect> effects_of(const Ablation& ablation, const std::vector<CellResult>& results) {
  std::vector<MeasuredEffect> effects;
  for (const Measure& measure : kMeasures) {
    std::vector<CellMeasure> cells;
    for (const CellResult& result : results) {
      auto it = result.measures.find(measure.key);
      if (it != result.measures.end()) cells.push_back({result.cell->setting, result.cell->seed, it->second});
    }
    if (cells.empty()) continue;
    auto add = [&](Effect effect) {
      std::string sentence = sentence_of(measure, effect);
      effects.push_back({measure.key, std::move(effect), std::move(sentence)});
    };
    const auto& axes = ablation.axes;
    for (const AblationAxis& axis : axes) {
      for (size_t v = 1; v < axis.values.size(); ++v) {
        add(main_effect(cells, axis.name, axis.values[0].name, axis.values[v].name));
      }
    }
    for (size_t a = 0; a < axes.size(); ++a) {
      for (size_t b = a + 1; b < axes.size(); ++b) {
        for (size_t v = 1; v < axes[a].values.size(); ++v) {
          for (size_t w = 1; w < axes[b].values.size(); ++w) {
            add(interaction(cells, axes[a].name, axes[a].values[0].name, axes[a].values[v].name, axes[b].name,
                            axes[b].values[0].name, axes[b].values[w].name));
          }
        }
      }
    }
  }
  return effects;
}

void write_ablation(const Ablation& ablation, const std::vector<CellResult>& results,
                    const std::vector<MeasuredEffect>& effects) {
  AblationPage page;
  page.name = ablation.name;
  for (const AblationAxis& axis : ablation.axes) page.axes.push_back(axis.name);
  Json cells = Json::array(), found = Json::array();
  for (const CellResult& result : results) {
    Json means = Json::object();
    AblationPage::Cell shown{{}, result.cell->seed, result.status, {}, result.gains, result.heldout};
    Json gains = Json::array(), heldout = Json::object();
    for (const auto& [level, rates] : result.heldout) {
      for (const auto& [step, rate] : rates) heldout[level].push_back({{"step", step}, {"correct", rate}});
    }
    for (const RateDifference& gain : result.gains) gains.push_back(to_json(gain));
    for (const std::string& axis : page.axes) shown.setting.push_back(result.cell->setting.at(axis));
    for (const auto& [measure, tasks] : result.measures) {
      double sum = 0;
      for (const auto& [task, value] : tasks) sum += value;
      double mean = sum / static_cast<double>(tasks.size());
      means[measure] = {{"mean", mean}, {"tasks", tasks.size()}};
      shown.measures[measure] = mean;
    }
    cells.push_back({{"setting", result.cell->setting},
                     {"seed", result.cell->seed},
                     {"status", result.status},
                     {"folder", result.cell->name},
                     {"measures", means},
                     {"gains", gains},
                     {"heldout", heldout}});
    page.cells.push_back(std::move(shown));
  }
  for (const Measure& measure : kMeasures) {
    AblationPage::Measure shown{measure.key, measure.words, measure.unit, measure.scale, {}};
    for (const MeasuredEffect& one : effects) {
      if (one.measure != measure.key) continue;
      shown.effects.push_back({one.effect, one.sentence});
      found.push_back({{"measure", one.measure},
                       {"effect", one.effect.name},
                       {"difference", one.effect.difference},
                       {"low", one.effect.interval.low},
                       {"high", one.effect.interval.high},
                       {"blocks", one.effect.blocks},
                       {"tasks", one.effect.tasks},
                       {"sentence", one.sentence}});
    }
    if (!shown.effects.empty()) page.measures.push_back(std::move(shown));
  }
  Json whole = {{"name", ablation.name}, {"axes", page.axes}, {"cells", cells}, {"effects", found}};
  fs::create_directories(ablation.folder);
  write_file(ablation.folder / "ablation.json", whole.dump(2) + "\n");
  write_file(ablation.folder / "ablation.md", ablation_markdown(page));
  write_file(ablation.folder / "ablation.html", ablation_html(page));
}

}  // namespace tritonrl
