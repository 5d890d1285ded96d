// SPDX-License-Identifier: Apache-2.0
#include "app/commands/task_stats.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/text.h"

namespace tritonrl {

namespace {

constexpr size_t kOperatorsShown = 40;
constexpr int kBins = 12;

struct Bin {
  int64_t from = 0, to = 0, count = 0;  // [from, to).
};

// Equal bins up to the 99th percentile, the last one open.
std::vector<Bin> histogram(std::vector<int64_t> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  int64_t top = values[static_cast<size_t>(0.99 * static_cast<double>(values.size() - 1))];
  int64_t width = std::max<int64_t>(1, top / kBins + 1);
  std::vector<Bin> bins;
  for (int64_t i = 0; i < kBins; ++i) bins.push_back({i * width, (i + 1) * width, 0});
  bins.back().to = values.back() + 1;
  for (int64_t v : values) ++bins[static_cast<size_t>(std::min<int64_t>(v / width, kBins - 1))].count;
  while (bins.size() > 1 && bins.back().count == 0) bins.pop_back();
  return bins;
}

int64_t quantile(std::vector<int64_t> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

std::vector<std::pair<std::string, int64_t>> by_count(const std::map<std::string, int64_t>& counts) {
  std::vector<std::pair<std::string, int64_t>> out(counts.begin(), counts.end());
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return out;
}

std::string decade(int64_t power) { return power < 0 ? "not known" : cat("1e", power, " to 1e", power + 1); }

reporting::Chart bars(const std::string& title, const std::string& summary,
                      const std::vector<std::pair<std::string, int64_t>>& rows) {
  reporting::Chart chart;
  chart.kind = reporting::Chart::Kind::kBars;
  chart.title = title;
  chart.summary = summary;
  chart.x_label = "tasks";
  reporting::Series series;
  series.name = "tasks";
  series.color = "c-blue";
  for (const auto& [name, count] : rows) {
    chart.categories.push_back(name);
    series.y.push_back(static_cast<double>(count));
  }
  chart.series.push_back(std::move(series));
  return chart;
}

std::vector<std::pair<std::string, int64_t>> bin_rows(const std::vector<int64_t>& values) {
  std::vector<std::pair<std::string, int64_t>> rows;
  for (const Bin& bin : histogram(values)) rows.emplace_back(cat(bin.from, " to ", bin.to - 1), bin.count);
  return rows;
}

Json lengths_json(const std::vector<int64_t>& values) {
  Json bins = Json::array();
  for (const Bin& bin : histogram(values)) bins.push_back({{"from", bin.from}, {"to", bin.to}, {"count", bin.count}});
  return {{"median", quantile(values, 0.5)},
          {"p95", quantile(values, 0.95)},
          {"max", quantile(values, 1)},
          {"histogram", bins}};
}

}  // namespace

TaskStats stats_of(const std::filesystem::path& tasks, const std::string& unit,
                   const std::function<int64_t(const std::string&)>& length) {
  TaskStats stats;
  stats.unit = unit;
  std::set<std::string> graphs;
  for_each_json_line(tasks, [&](int64_t line, const Json& json) {
    Task task = task_from_json(json, cat(tasks.string(), ":", line));
    TaskFacts facts = facts_of(task);
    ++stats.tasks;
    stats.with_solution += !task.solution.empty();
    ++stats.levels[task.level];
    ++stats.difficulties[task.difficulty];
    for (const std::string& op : facts.operators) ++stats.operators[op];
    for (const std::string& type : facts.dtypes) ++stats.dtypes[type];
    ++stats.elements[facts.elements > 0 ? static_cast<int64_t>(std::log10(static_cast<double>(facts.elements))) : -1];
    stats.source_lengths.push_back(length(task.source));
    if (!task.solution.empty()) stats.solution_lengths.push_back(length(task.solution));
    if (!task.graph_hash.empty()) graphs.insert(task.graph_hash);
  });
  if (stats.tasks == 0) throw usage_error("there are no tasks in it", tasks.string());
  stats.graphs = static_cast<int64_t>(graphs.size());
  return stats;
}

Json to_json(const TaskStats& s) {
  Json levels = Json::object(), difficulties = Json::object(), elements = Json::object();
  for (const auto& [level, count] : s.levels) levels[cat(level)] = count;
  for (const auto& [difficulty, count] : s.difficulties) difficulties[difficulty ? cat(difficulty) : "unknown"] = count;
  for (const auto& [power, count] : s.elements) elements[power < 0 ? "unknown" : cat("1e", power)] = count;
  return {{"tasks", s.tasks},
          {"with_solution", s.with_solution},
          {"graphs", s.graphs},
          {"levels", levels},
          {"difficulties", difficulties},
          {"operators", s.operators},
          {"dtypes", s.dtypes},
          {"input_elements", elements},
          {"length_unit", s.unit},
          {"source_length", lengths_json(s.source_lengths)},
          {"solution_length", lengths_json(s.solution_lengths)}};
}

std::string to_text(const TaskStats& s) {
  std::string out = cat(s.tasks, " tasks, ", s.with_solution, " with a solution, ", s.graphs, " different graphs, ",
                        s.operators.size(), " different operators\n");
  auto list = [&](const std::string& title, const std::vector<std::pair<std::string, int64_t>>& rows) {
    int64_t most = 1;
    size_t width = 0;
    for (const auto& [name, count] : rows) most = std::max(most, count), width = std::max(width, name.size());
    out += "\n" + title + "\n";
    for (const auto& [name, count] : rows) {
      out += cat("  ", name, std::string(width - name.size() + 2, ' '),
                 std::string(static_cast<size_t>(40 * count / most), '#'), " ", count, "\n");
    }
  };
  std::vector<std::pair<std::string, int64_t>> rows;
  for (const auto& [level, count] : s.levels) rows.emplace_back(cat(level), count);
  list("level", rows);
  rows.clear();
  for (const auto& [difficulty, count] : s.difficulties)
    rows.emplace_back(difficulty ? cat(difficulty) : "not known", count);
  list("difficulty (compute nodes)", rows);
  list("dtype", by_count(s.dtypes));
  rows.clear();
  for (const auto& [power, count] : s.elements) rows.emplace_back(decade(power), count);
  list("elements of the inputs", rows);
  rows = by_count(s.operators);
  if (rows.size() > kOperatorsShown) rows.resize(kOperatorsShown);
  list("operators (tasks that have it)", rows);
  list(cat("length of the source, ", s.unit), bin_rows(s.source_lengths));
  list(cat("length of the solution, ", s.unit), bin_rows(s.solution_lengths));
  return out;
}

reporting::Document to_document(const TaskStats& s, const std::string& title) {
  using namespace reporting;
  Document page{title, {}};
  page.say(cat(s.tasks, " tasks, ", s.with_solution, " with a solution, ", s.graphs, " different graphs, ",
               s.operators.size(), " different operators."),
           Paragraph::Role::kLead);
  std::vector<std::pair<std::string, int64_t>> rows;
  for (const auto& [difficulty, count] : s.difficulties)
    rows.emplace_back(difficulty ? cat(difficulty, " nodes") : "not known", count);
  page.blocks.push_back(Heading{2, "Depth"});
  page.blocks.push_back(bars("Compute nodes per task", "How many tasks have how many compute nodes.", rows));
  page.blocks.push_back(Heading{2, "Operators"});
  rows = by_count(s.operators);
  if (rows.size() > kOperatorsShown) rows.resize(kOperatorsShown);
  page.blocks.push_back(bars("Tasks by operator",
                             cat("The ", rows.size(), " most frequent of ", s.operators.size(), " operators."), rows));
  page.blocks.push_back(Heading{2, "Types and sizes"});
  page.blocks.push_back(bars("Tasks by dtype", "A task may have several.", by_count(s.dtypes)));
  rows.clear();
  for (const auto& [power, count] : s.elements) rows.emplace_back(decade(power), count);
  page.blocks.push_back(bars("Elements of the inputs", "Sum over all inputs of a task, by powers of ten.", rows));
  page.blocks.push_back(Heading{2, "Lengths"});
  page.blocks.push_back(bars(cat("Source, ", s.unit), "Length of the reference module.", bin_rows(s.source_lengths)));
  if (!s.solution_lengths.empty()) {
    page.blocks.push_back(
        bars(cat("Solution, ", s.unit), "Length of the Triton solution.", bin_rows(s.solution_lengths)));
  }
  return page;
}

}  // namespace tritonrl
