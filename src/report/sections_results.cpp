// SPDX-License-Identifier: Apache-2.0
// Sections about the evaluation.
#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/text.h"
#include "report/sections.h"

namespace tritonrl::reporting {

namespace {

constexpr size_t kMaxPhases = 24;  // Rows of the table of phases.
constexpr std::array<const char*, kStageCount> kStageColors = {"c-grey",   "c-orange", "c-vermilion",
                                                               "c-purple", "c-sky",    "c-yellow"};

// Levels any row has, numbers first in numeric order, "all" last.
std::vector<std::string> levels_of(const RunData& run) {
  std::vector<std::string> levels;
  for (const auto& row : run.rows) {
    for (const auto& [level, unused] : row.levels) {
      if (std::find(levels.begin(), levels.end(), level) == levels.end()) levels.push_back(level);
    }
  }
  auto key = [](const std::string& level) { return std::tuple(level == "all", level.size(), level); };
  std::sort(levels.begin(), levels.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
  return levels;
}

const LevelMetrics* find_level(const ResultsRow& row, const std::string& level) {
  auto it = row.levels.find(level);
  return it == row.levels.end() ? nullptr : &it->second;
}

std::string level_words(const std::string& level) { return level == "all" ? "all levels" : "level " + level; }

// The most frequent name, in words.
std::string top_name(const std::map<std::string, int64_t>& counts) {
  auto most =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return replace_all(most->first, "_", " ");
}

std::string counted(const Rate& rate) { return cat(rate.k, " of ", rate.n); }

Cell rate_cell(const Rate& rate) {
  if (rate.n == 0) return cell("-", "no samples");
  return cell(percent(rate.value()), cat(counted(rate), ", ", percent_range(rate.interval(), rate.n)));
}

// A bootstrap says nothing about spread when every task agrees.
bool has_spread(const Interval& interval) { return interval.high > interval.low; }

// How `model` differs from the one it was compared with, as the end of a sentence. Left out against the base model when
// the difference is clear: the two rates beside each other say it, and the table has the interval.
std::string difference_words(const RunData& run, const std::string& level, const std::string& model) {
  std::string words;
  for (const auto& c : run.comparisons) {
    if (c.level != level || c.b != model || c.tasks == 0) continue;
    bool clear = c.interval.low > 0 || c.interval.high < 0;
    if (clear && c.a == "base") continue;
    std::string range = has_spread(c.interval)
                            ? cat("95 % interval ", points(c.interval.low), " to ", points(c.interval.high))
                            : std::string("the same on every task");
    words += cat(clear ? "; against " : "; no clear difference from ", model_words(c.a), clear ? ": " : " (",
                 points(c.difference), " points", clear ? " (" : ", ", range, ")");
  }
  return words;
}

// One paragraph for a level: what each trained model reaches, beside the base model.
Text level_paragraph(const RunData& run, const std::string& level) {
  const LevelMetrics* base = nullptr;
  for (const auto& row : run.rows) {
    if (row.model == "base") base = find_level(row, level);
  }
  Text text;
  for (const auto& row : run.rows) {
    const LevelMetrics* m = find_level(row, level);
    if (!m || m->samples == 0 || row.model == "base") continue;
    bool first = text.empty();
    text.push_back(strong(cat(first ? "" : " ", model_words(row.model), " made ", percent(m->correct.value()),
                              first ? cat(" of held-out level-", level, " samples correct") : "")));
    text.push_back(plain(
        cat(" (", counted(m->correct), ", 95 % interval ", percent_range(m->correct.interval(), m->correct.n), ")")));
    if (first && base && base->samples > 0) {
      text.push_back(plain(cat("; the base model ", percent(base->correct.value()), " (", counted(base->correct), ", ",
                               percent_range(base->correct.interval(), base->correct.n), ")")));
    }
    text.push_back(plain(difference_words(run, level, row.model) + "."));
  }
  if (text.empty() && base && base->samples > 0) {
    text.push_back(
        plain(cat("The base model made ", percent(base->correct.value()), " of held-out level-", level,
                  " samples correct (", counted(base->correct), ", 95 % interval ",
                  percent_range(base->correct.interval(), base->correct.n), "). No trained model was evaluated.")));
  }
  return text;
}

std::string decided_words(const RunData& run) {
  std::string words;
  int64_t interpreter = 0, replay = 0;
  if (auto it = run.paths.find("interpreter"); it != run.paths.end()) interpreter = it->second;
  if (auto it = run.paths.find("replay"); it != run.paths.end()) replay = it->second;
  if (interpreter > 0) {
    words += cat("Correctness of ", plural(interpreter, "candidate"),
                 " was decided by walking the recorded launches through Triton's interpreter on small shapes. ");
  }
  if (replay > 0) {
    words += cat("Correctness of ", plural(replay, "candidate"),
                 " was decided by replaying the compiled kernels on a GPU. ");
  }
  bool timed = false;
  for (const auto& row : run.rows) {
    for (const auto& [level, m] : row.levels) timed |= m.speedup.has_value();
  }
  if (!run.rows.empty() && !timed) words += "Speed was not measured. ";
  if (!run.sandbox_missing.empty()) {
    words += cat("The sandbox of this machine lacked: ", join(run.sandbox_missing, ", "), ".");
  }
  return trim(words);
}

// fast_p of every model at every level; nothing where no time was measured.
void add_fast(const RunData& run, Document& document) {
  Table table;
  table.caption = "fast_p: share of all samples that are correct and more than p times as fast as the reference";
  table.columns = {{"Level and model", false}};
  for (double p : kFastPs) table.columns.push_back({cat("p = ", Json(p).dump()), true});
  bool any = false;
  for (const auto& level : levels_of(run)) {
    for (const auto& row : run.rows) {
      const LevelMetrics* m = find_level(row, level);
      if (!m) continue;
      std::vector<Cell> cells = {
          {{plain(cat(level == "all" ? "All levels" : "Level " + level, ", ")), strong(row.model)}, ""}};
      for (double p : kFastPs) {
        auto it = std::find_if(m->fast.begin(), m->fast.end(), [&](const FastShare& share) { return share.p == p; });
        cells.push_back(it == m->fast.end() ? cell("not measured") : rate_cell(it->rate));
      }
      any |= !m->fast.empty();
      table.rows.push_back(std::move(cells));
    }
  }
  if (any) document.blocks.push_back(std::move(table));
}

// Tasks of level 1 by whether their operators had training tasks; nothing where no row says.
void add_teaching(const RunData& run, Document& document) {
  Table table;
  table.caption = "Tasks of level 1, by whether all their operators had training tasks";
  table.columns = {{"Operators and model", false}, {"Tasks", true}, {"Correct", true}, {"Speedup", true}};
  for (const auto& [key, words] :
       {std::pair(kTaught, "Taught"), std::pair(kNeverSeen, "Never seen"), std::pair(kTeachingUnknown, "Not known")}) {
    for (const auto& row : run.rows) {
      auto it = row.teaching.find(key);
      if (it == row.teaching.end()) continue;
      const OperatorMetrics& m = it->second;
      table.rows.push_back({{{plain(cat(words, ", ")), strong(row.model)}, ""},
                            cell(cat(m.tasks)),
                            rate_cell(m.correct),
                            cell(m.speedup ? fixed(m.speedup->geometric_mean, 2) + "x" : "not measured")});
    }
  }
  if (!table.rows.empty()) document.blocks.push_back(std::move(table));
}

}  // namespace

void add_verdict(const RunData& run, Document& document) {
  bool any = false;
  for (const auto& level : levels_of(run)) {
    if (level == "all") continue;
    Text text = level_paragraph(run, level);
    if (text.empty()) continue;
    any = true;
    document.blocks.push_back(Paragraph{Paragraph::Role::kLead, std::move(text)});
  }
  if (!any) {
    document.say("This run has no evaluation results.", Paragraph::Role::kLead);
  }
  int64_t rewarded_faults = 0;
  for (const auto& phase : run.verdicts) rewarded_faults += phase.rewarded_faults;
  if (rewarded_faults > 0) {
    document.blocks.push_back(Paragraph{
        Paragraph::Role::kWarning,
        {strong("Do not trust this run: "), plain(cat(plural(rewarded_faults, "harness fault"), " carried a reward. ")),
         plain("Our own failures must never train the model.")}});
  }
  std::string decided = decided_words(run);
  if (!decided.empty()) document.say(decided, Paragraph::Role::kNote);
  if (run.training_set) document.say(run.training_set->words(), Paragraph::Role::kNote);
}

void add_results(const RunData& run, Document& document) {
  if (run.rows.empty()) return;
  document.blocks.push_back(Heading{2, "Results on held-out tasks"});
  std::set<int64_t> ks;
  size_t turns = 0;
  int64_t faults = 0, truncated = 0, samples = 0;
  for (const auto& row : run.rows) {
    for (const auto& [level, m] : row.levels) {
      for (const auto& p : m.pass_at) ks.insert(p.k);
      turns = std::max(turns, m.correct_within.size());
      if (level != "all") continue;
      faults += m.harness_faults;
      truncated += m.truncated.k;
      samples += m.samples;
    }
  }
  Table table;
  table.caption = "Share of samples that got this far, and pass@k";
  table.columns = {
      {"Level and model", false}, {"Samples", true}, {"Valid", true}, {"Compiled", true}, {"Correct", true}};
  for (int64_t k : ks) table.columns.push_back({cat("pass@", k), true});
  if (turns > 1) table.columns.push_back({cat("Within ", turns, " turns"), true});
  table.columns.push_back({"Speedup", true});
  table.columns.push_back({"Tokens", true});
  for (const auto& level : levels_of(run)) {
    for (const auto& row : run.rows) {
      const LevelMetrics* m = find_level(row, level);
      if (!m) continue;
      std::vector<Cell> cells = {
          {{plain(cat(level == "all" ? "All levels" : "Level " + level, ", ")), strong(row.model)}, ""},
          cell(cat(m->samples), plural(m->tasks, "task")),
          rate_cell(m->valid),
          rate_cell(m->compiled),
          rate_cell(m->correct)};
      for (int64_t k : ks) {
        auto it = std::find_if(m->pass_at.begin(), m->pass_at.end(), [&](const PassAtK& p) { return p.k == k; });
        if (it == m->pass_at.end()) {
          cells.push_back(cell("-"));
        } else {
          std::string over = it->tasks == m->tasks ? "" : cat(", ", plural(it->tasks, "task"));
          std::string range = has_spread(it->interval) ? percent_range(it->interval, it->tasks) : "all tasks alike";
          cells.push_back(cell(percent(it->value), range + over));
        }
      }
      if (turns > 1) {
        cells.push_back(m->correct_within.empty() ? cell("-") : rate_cell(m->correct_within.back()));
      }
      if (m->speedup) {
        cells.push_back(cell(fixed(m->speedup->geometric_mean, 2) + "x", cat(counted(m->speedup->faster), " faster")));
      } else {
        cells.push_back(cell("not measured"));
      }
      cells.push_back(cell(m->samples > 0 ? fixed(m->mean_tokens, 0) : "-"));
      table.rows.push_back(std::move(cells));
    }
  }
  document.blocks.push_back(std::move(table));
  std::string note =
      "Small figures are counts and 95 % intervals: Wilson intervals over samples for rates (samples of one task are "
      "not "
      "independent, so these are a little narrow), bootstrap over tasks for pass@k. Speedup is the geometric mean over "
      "correct, timed samples, beneath it how many were faster than the reference. Tokens is the mean answer length.";
  note += faults > 0 ? cat(" Left out of every n: ", plural(faults, "harness fault"), " (our own failures).")
                     : " No sample was lost to a harness fault.";
  if (samples > 0) note += cat(" Cut at the token limit: ", truncated, " of ", samples, " answers.");
  document.say(note, Paragraph::Role::kNote);
  add_fast(run, document);
  add_teaching(run, document);
  if (run.comparisons.empty()) return;
  Table differences;
  differences.caption = "Difference in correct rate on the same tasks (paired bootstrap over tasks, 2,000 resamples)";
  differences.columns = {{"Comparison", false}, {"Tasks", true}, {"Points", true}, {"95 % interval", true}};
  for (const auto& c : run.comparisons) {
    if (c.tasks == 0) continue;
    differences.rows.push_back(
        {cell(cat(c.b, " against ", c.a, ", ", level_words(c.level))), cell(cat(c.tasks)), cell(points(c.difference)),
         cell(has_spread(c.interval) ? cat(points(c.interval.low), " to ", points(c.interval.high))
                                     : "all tasks alike")});
  }
  if (!differences.rows.empty()) document.blocks.push_back(std::move(differences));
}

void add_stages(const RunData& run, Document& document) {
  if (run.rows.empty() && run.verdicts.empty()) return;
  document.blocks.push_back(Heading{2, "Where candidates ended"});
  Chart chart;
  chart.kind = Chart::Kind::kBars;
  chart.shares = true;
  chart.title = "Held-out samples by the stage that stopped them";
  chart.x_label = "share of samples";
  Series correct{"correct", "c-green", {}, {}};
  std::array<Series, kStageCount> stopped;
  for (int s = 0; s < kStageCount; ++s) {
    std::string name = replace_all(to_string(static_cast<Stage>(s)), "_", " ");
    stopped[static_cast<size_t>(s)] = {cat("stopped at ", name), kStageColors[static_cast<size_t>(s)], {}, {}};
  }
  for (const auto& level : levels_of(run)) {
    if (level == "all") continue;
    for (const auto& row : run.rows) {
      const LevelMetrics* m = find_level(row, level);
      if (!m || m->samples == 0) continue;
      chart.categories.push_back(cat("level ", level, ", ", row.model));
      correct.y.push_back(static_cast<double>(m->correct.k));
      for (int s = 0; s < kStageCount; ++s) {
        auto it = m->stopped_at.find(to_string(static_cast<Stage>(s)));
        stopped[static_cast<size_t>(s)].y.push_back(it == m->stopped_at.end() ? 0 : static_cast<double>(it->second));
      }
    }
  }
  if (!chart.categories.empty()) {
    chart.summary = "Numbers in the bars are samples. ";
    for (const auto& row : run.rows) {
      const LevelMetrics* m = find_level(row, "all");
      if (!m || m->samples == 0) continue;
      chart.summary += cat(row.model, ": ", counted(m->correct), " correct",
                           m->stopped_at.empty() ? "" : ", stopped most often at " + top_name(m->stopped_at), ". ");
    }
    chart.summary = trim(chart.summary);
    for (auto& series : stopped) {
      bool used = std::any_of(series.y.begin(), series.y.end(), [](double y) { return y > 0; });
      if (used) chart.series.push_back(std::move(series));
    }
    chart.series.push_back(std::move(correct));
    document.blocks.push_back(std::move(chart));
  }
  if (!run.rows.empty()) {
    Table table;
    table.caption = "Outcomes of held-out samples, all levels";
    table.columns = {{"Outcome", false}};
    for (const auto& row : run.rows) table.columns.push_back({row.model, true});
    for (int o = 0; o < kOutcomeCount; ++o) {
      auto outcome = static_cast<Outcome>(o);
      std::vector<Cell> cells = {{{code(to_string(outcome))}, ""}};
      int64_t total = 0;
      for (const auto& row : run.rows) {
        const LevelMetrics* m = find_level(row, "all");
        int64_t count = 0;
        if (m && outcome == Outcome::kHarnessFault) count = m->harness_faults;
        if (m && m->outcomes.contains(to_string(outcome))) count = m->outcomes.at(to_string(outcome));
        total += count;
        bool share = m && m->samples > 0 && outcome != Outcome::kHarnessFault;
        cells.push_back(cell(
            cat(count), share ? percent(static_cast<double>(count) / static_cast<double>(m->samples)) : "not scored"));
      }
      if (total > 0) table.rows.push_back(std::move(cells));
    }
    document.blocks.push_back(std::move(table));
  }
  if (run.verdicts.empty()) return;
  Table table;
  table.caption = "Every verified candidate of this run";
  table.columns = {{"Phase", false},         {"Candidates", true},  {"Correct", true},
                   {"Harness faults", true}, {"Mean reward", true}, {"Most frequent failures", false}};
  size_t phases = run.verdicts.size(), shown = std::min(phases, kMaxPhases);
  if (shown < phases) table.caption += cat(" (", shown, " of ", phases, " phases, evenly spaced)");
  for (size_t i = 0; i < shown; ++i) {
    const PhaseVerdicts& phase = run.verdicts[shown < phases ? i * (phases - 1) / (shown - 1) : i];
    auto failures = phase.outcomes;
    int64_t correct_count = failures.contains("pass") ? failures.at("pass") : 0;
    int64_t faults = failures.contains("harness_fault") ? failures.at("harness_fault") : 0;
    failures.erase("pass");
    failures.erase("harness_fault");
    std::string reward =
        phase.rewarded > 0 ? fixed(phase.reward_sum / static_cast<double>(phase.rewarded), 3) : "none given";
    int64_t scored = phase.verdicts - faults;
    table.rows.push_back({cell(phase.phase), cell(cat(phase.verdicts)), rate_cell({correct_count, scored}),
                          cell(cat(faults)), cell(reward), cell(failures.empty() ? "-" : top_counts(failures, 3))});
  }
  document.blocks.push_back(std::move(table));
}

}  // namespace tritonrl::reporting
