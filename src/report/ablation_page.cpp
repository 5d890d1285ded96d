// SPDX-License-Identifier: Apache-2.0
#include "report/ablation_page.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "base/text.h"
#include "report/layout.h"

namespace tritonrl {

using namespace reporting;

namespace {

std::string shown(const AblationPage::Measure& measure, double value, bool sign) {
  std::string text = fixed(measure.scale * value, measure.scale > 1 ? 1 : 3);
  return (sign && value > 0 ? "+" : "") + text;
}

Table effects_table(const AblationPage::Measure& measure) {
  Table table;
  table.caption = "Effect on: " + measure.words;
  table.columns = {{"", false},      {measure.unit, true}, {"95 % interval", true},
                   {"blocks", true}, {"tasks", true},      {"measurable", false}};
  for (const auto& [effect, sentence] : measure.effects) {
    if (effect.blocks == 0) {
      table.rows.push_back({cell(effect.name), cell("-"), cell("-"), cell("0"), cell("0"), cell("no run to compare")});
      continue;
    }
    table.rows.push_back({cell(effect.name), cell(shown(measure, effect.difference, true)),
                          cell(effect.blocks * effect.tasks > 1 ? cat(shown(measure, effect.interval.low, true), " to ",
                                                                      shown(measure, effect.interval.high, true))
                                                                : "-"),  // Of one block without tasks nothing is known.
                          cell(cat(effect.blocks)), cell(cat(effect.tasks)), cell(effect.measurable() ? "yes" : "no")});
  }
  return table;
}

Chart effects_chart(const AblationPage::Measure& measure) {
  Chart chart;
  chart.kind = Chart::Kind::kIntervals;
  chart.title = "Effects on: " + measure.words;
  chart.summary =
      "Difference that each change makes, with its 95 % interval; an interval that holds 0 is no measurable effect.";
  chart.x_label = "difference in " + measure.unit;
  Series value{"difference", "c-line", {}, {}}, low{"low", "c-line", {}, {}}, high{"high", "c-line", {}, {}};
  for (const auto& [effect, sentence] : measure.effects) {
    if (effect.blocks == 0) continue;
    chart.categories.push_back(effect.name);
    value.y.push_back(measure.scale * effect.difference);
    low.y.push_back(measure.scale * effect.interval.low);
    high.y.push_back(measure.scale * effect.interval.high);
  }
  chart.series = {value, low, high};
  return chart;
}

// A row for each cell: its setting and seed, then what `told` says of it, which is one text for each of `more`. No row
// for a cell of which nothing is told.
Table table_of_cells(const AblationPage& page, const std::string& caption, const std::vector<Table::Column>& more,
                     const std::function<std::vector<std::string>(const AblationPage::Cell&)>& told) {
  Table table;
  table.caption = caption;
  for (const std::string& axis : page.axes) table.columns.push_back({axis, false});
  table.columns.push_back({"seed", true});
  table.columns.insert(table.columns.end(), more.begin(), more.end());
  for (const auto& one : page.cells) {
    std::vector<std::string> texts = told(one);
    if (texts.empty()) continue;
    std::vector<Cell> row;
    for (const std::string& value : one.setting) row.push_back(cell(value));
    row.push_back(cell(cat(one.seed)));
    for (const std::string& text : texts) row.push_back(cell(text));
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table cells_table(const AblationPage& page) {
  std::vector<Table::Column> columns = {{"status", false}};
  for (const auto& measure : page.measures)
    columns.push_back({cat(measure.words, measure.unit == "points" ? ", %" : cat(", ", measure.unit)), true});
  return table_of_cells(page, "Cells", columns, [&](const AblationPage::Cell& one) {
    std::vector<std::string> texts = {one.status};
    for (const auto& measure : page.measures) {
      auto it = one.measures.find(measure.key);
      texts.push_back(it == one.measures.end() ? "-" : shown(measure, it->second, false));
    }
    return texts;
  });
}

// What each run's RL added to what it began with. No rows where no run has both evaluations.
Table gains_table(const AblationPage& page) {
  std::vector<std::string> levels;
  for (const auto& one : page.cells) {
    for (const RateDifference& gain : one.gains) {
      if (std::find(levels.begin(), levels.end(), gain.level) == levels.end()) levels.push_back(gain.level);
    }
  }
  std::vector<Table::Column> columns;
  for (const std::string& level : levels) columns.push_back({"level " + level, true});
  const char* caption = "Correct after RL minus correct at its start, in points, with the 95 % interval over tasks";
  return table_of_cells(page, caption, columns, [&](const AblationPage::Cell& one) {
    std::vector<std::string> texts;
    if (one.gains.empty()) return texts;
    for (const std::string& level : levels) {
      auto it = std::find_if(one.gains.begin(), one.gains.end(),
                             [&](const RateDifference& gain) { return gain.level == level; });
      auto points = [](double share) { return cat(share > 0 ? "+" : "", fixed(100 * share, 1)); };
      texts.push_back(
          it == one.gains.end() || it->tasks == 0
              ? "-"
              : cat(points(it->difference), " (", points(it->interval.low), " to ", points(it->interval.high), ")"));
    }
    return texts;
  });
}

// The start and RL's steps after which held-out tasks were answered, by any cell or by those that are done.
std::vector<int64_t> steps_of(const AblationPage& page, const std::string& level, bool done) {
  std::set<int64_t> all;
  for (const auto& cell : page.cells) {
    auto it = cell.heldout.find(level);
    if (it == cell.heldout.end() || (done && cell.status != "done")) continue;
    for (const auto& [step, rate] : it->second) all.insert(step);
  }
  return {all.begin(), all.end()};
}

std::string name_of(const AblationPage::Cell& cell) {
  std::string name;
  for (const std::string& value : cell.setting) name += (name.empty() ? "" : ", ") + value;
  return name;
}

Table heldout_table(const AblationPage& page, const std::string& level) {
  std::vector<int64_t> all = steps_of(page, level, false), steps = evenly_spaced(all, 9);
  std::string caption = cat("Correct on level ", level, " after so many steps of RL, %");
  if (steps.size() < all.size()) caption += cat(" (", steps.size(), " of ", all.size(), " evaluations)");
  std::vector<Table::Column> columns = {{"status", false}};
  for (int64_t step : steps) columns.push_back({cat(step), true});
  return table_of_cells(page, caption, columns, [&](const AblationPage::Cell& one) {
    std::vector<std::string> texts;
    auto rates = one.heldout.find(level);
    if (rates == one.heldout.end()) return texts;
    texts.push_back(one.status);
    for (int64_t step : steps) {
      auto rate = rates->second.find(step);
      texts.push_back(rate == rates->second.end() ? "-" : fixed(100 * rate->second, 1));
    }
    return texts;
  });
}

// A line a setting, the mean over its seeds that are done; those that end highest where there are more than colours.
Chart heldout_chart(const AblationPage& page, const std::string& level) {
  std::vector<int64_t> steps = steps_of(page, level, true);
  constexpr const char* kColours[] = {"c-line", "c-orange", "c-green", "c-vermilion", "c-purple", "c-sky", "c-grey"};
  Chart chart;
  chart.title = cat("Correct on level ", level, " during RL");
  chart.x_label = "step";
  chart.y_label = "% correct";
  chart.join_gaps = true;  // Cells need not be evaluated after the same steps.
  std::vector<std::string> names;
  std::map<std::string, std::pair<std::vector<double>, double>> sums;  // Setting -> sum at each step, number of seeds.
  for (const auto& cell : page.cells) {
    auto rates = cell.heldout.find(level);
    if (cell.status != "done" || rates == cell.heldout.end()) continue;
    auto [it, added] = sums.try_emplace(name_of(cell), std::vector<double>(steps.size(), 0.0), 0.0);
    if (added) names.push_back(it->first);
    it->second.second += 1;
    for (size_t i = 0; i < steps.size(); ++i) {
      auto rate = rates->second.find(steps[i]);
      it->second.first[i] += rate == rates->second.end() ? std::nan("") : 100 * rate->second;
    }
  }
  for (const std::string& name : names) {
    Series series{name, "", {}, {}};
    for (size_t i = 0; i < steps.size(); ++i) {
      series.x.push_back(static_cast<double>(steps[i]));
      series.y.push_back(sums[name].first[i] / sums[name].second);
    }
    chart.series.push_back(std::move(series));
  }
  auto last = [](const Series& series) {
    auto it = std::find_if(series.y.rbegin(), series.y.rend(), [](double y) { return std::isfinite(y); });
    return it == series.y.rend() ? -1.0 : *it;
  };
  std::stable_sort(chart.series.begin(), chart.series.end(),
                   [&](const Series& a, const Series& b) { return last(a) > last(b); });
  size_t all = chart.series.size();
  if (all > std::size(kColours)) chart.series.resize(std::size(kColours));
  for (size_t i = 0; i < chart.series.size(); ++i) chart.series[i].color = kColours[i];
  chart.summary = cat(
      "Means over the seeds that are done",
      all > chart.series.size() ? cat("; of ", all, " settings the ", chart.series.size(), " that end highest") : "",
      ".");
  return chart;
}

// What RL did to each run, from its start on: nothing about the axes yet.
void add_runs(const AblationPage& page, Document* document) {
  Table gains = gains_table(page);
  std::vector<Block> blocks;
  if (!gains.rows.empty()) blocks.push_back(std::move(gains));
  for (const char* level : {"1", "2"}) {
    if (steps_of(page, level, false).size() < 3) continue;  // Nothing between start and end.
    if (Chart chart = heldout_chart(page, level); !chart.series.empty()) blocks.push_back(std::move(chart));
    blocks.push_back(heldout_table(page, level));
  }
  if (blocks.empty()) return;
  document->blocks.push_back(Heading{2, "What RL did to each run"});
  for (Block& block : blocks) document->blocks.push_back(std::move(block));
}

Document tell(const AblationPage& page) {
  Document document;
  document.title = "Ablation: " + page.name;
  auto done =
      std::count_if(page.cells.begin(), page.cells.end(), [](const auto& cell) { return cell.status == "done"; });
  document.say(cat(done, " of ", page.cells.size(),
                   " cells are done. Effects are means over blocks of runs that differ in nothing else; "
                   "intervals cover both the chance of "
                   "training and the choice of tasks (bootstrap over blocks and tasks, Student's t)."),
               Paragraph::Role::kLead);
  if (page.measures.empty()) {
    document.say("No cell has results yet.", Paragraph::Role::kWarning);
  }
  add_runs(page, &document);
  for (const auto& measure : page.measures) {
    document.blocks.push_back(Heading{2, measure.words});
    BulletList sentences;
    for (const auto& one : measure.effects) sentences.items.push_back({plain(one.sentence)});
    document.blocks.push_back(std::move(sentences));
    Chart chart = effects_chart(measure);
    if (!chart.categories.empty()) document.blocks.push_back(std::move(chart));
    document.blocks.push_back(effects_table(measure));
  }
  document.blocks.push_back(Heading{2, "Cells"});
  document.blocks.push_back(cells_table(page));
  return document;
}

}  // namespace

std::string ablation_markdown(const AblationPage& page) { return to_markdown(tell(page)); }
std::string ablation_html(const AblationPage& page) { return to_html(tell(page)); }

}  // namespace tritonrl
