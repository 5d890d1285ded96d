// SPDX-License-Identifier: Apache-2.0
#include "eval/tables.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/text.h"

namespace tritonrl {
namespace {

using Lines = std::vector<std::vector<std::string>>;

std::string percent(double share, int digits) { return fixed(100 * share, digits); }

std::string with_interval(double value, const Interval& interval) {
  return cat(percent(value, 1), " % (", percent(interval.low, 0), "-", percent(interval.high, 0), ")");
}

std::string rate_text(const Rate& rate) { return rate.n == 0 ? "-" : with_interval(rate.value(), rate.interval()); }

std::string level_name(const std::string& level) { return level == "all" ? level : "level " + level; }

std::string speedup_text(const std::optional<SpeedupStats>& speedup) {
  return speedup ? fixed(speedup->geometric_mean, 2) + "x" : "not measured";
}

// The first column begins at the left, numbers end at the right.
std::string aligned(const Lines& lines) {
  std::vector<size_t> widths(lines[0].size());
  for (const auto& line : lines) {
    for (size_t c = 0; c < line.size(); ++c) widths[c] = std::max(widths[c], line[c].size());
  }
  std::string out;
  for (const auto& line : lines) {
    for (size_t c = 0; c < line.size(); ++c) {
      std::string blank(widths[c] - line[c].size(), ' ');
      out += c == 0 ? line[c] + blank : "  " + blank + line[c];
    }
    out += "\n";
  }
  return out;
}

}  // namespace

std::string to_table(const ResultsRow& row) {
  std::set<int64_t> ks;
  size_t turns = 0;
  int64_t faults = 0;
  for (const auto& [level, m] : row.levels) {
    for (const PassAtK& p : m.pass_at) ks.insert(p.k);
    turns = std::max(turns, m.correct_within.size());
    if (level == "all") faults = m.harness_faults;
  }
  Lines lines = {{row.model, "tasks", "answers", "valid", "compiled", "correct"}};
  for (int64_t k : ks) lines[0].push_back(cat("pass@", k));
  if (turns > 1) lines[0].push_back(cat("within ", turns, " turns"));
  lines[0].push_back("speedup");
  for (const auto& [level, m] : row.levels) {
    std::vector<std::string> line = {level_name(level),  cat(m.tasks),          cat(m.samples),
                                     rate_text(m.valid), rate_text(m.compiled), rate_text(m.correct)};
    for (int64_t k : ks) {
      auto it = std::find_if(m.pass_at.begin(), m.pass_at.end(), [&](const PassAtK& p) { return p.k == k; });
      line.push_back(it == m.pass_at.end() ? "-" : with_interval(it->value, it->interval));
    }
    if (turns > 1) line.push_back(m.correct_within.empty() ? "-" : rate_text(m.correct_within.back()));
    line.push_back(speedup_text(m.speedup));
    lines.push_back(std::move(line));
  }
  std::string out = aligned(lines);
  if (faults > 0) out += cat(faults, " more answers have no verdict: the verifier failed on them\n");
  return out;
}

std::string funnel_table(const ResultsRow& row) {
  Lines lines = {{"got through"}};
  auto all = row.levels.find("all");
  bool timed = all != row.levels.end() && (all->second.speedup || all->second.stopped_at.contains("time"));
  int stages = timed ? kStageCount : kStageCount - 1;
  for (int s = 0; s < stages; ++s) lines[0].push_back(to_string(static_cast<Stage>(s)));
  for (const auto& [level, m] : row.levels) {
    std::vector<std::string> line = {level_name(level)};
    for (int s = 0; s < stages; ++s) {
      Rate rate = m.through(static_cast<Stage>(s));
      line.push_back(rate.n == 0 ? "-" : cat(rate.k, " (", percent(rate.value(), 1), " %)"));
    }
    lines.push_back(std::move(line));
  }
  return aligned(lines);
}

std::string fast_table(const ResultsRow& row) {
  Lines lines = {{"correct and faster"}};
  for (double p : kFastPs) lines[0].push_back(cat("fast_", Json(p).dump()));
  bool any = false;
  for (const auto& [level, m] : row.levels) {
    std::vector<std::string> line = {level_name(level)};
    for (double p : kFastPs) {
      auto it = std::find_if(m.fast.begin(), m.fast.end(), [&](const FastShare& share) { return share.p == p; });
      line.push_back(it == m.fast.end() ? "not measured" : rate_text(it->rate));
    }
    any |= !m.fast.empty();
    lines.push_back(std::move(line));
  }
  return any ? aligned(lines) : "";
}

std::string peer_table(const ResultsRow& row) {
  if (row.peer.empty()) return "";
  Lines lines = {{"beside " + row.peer, "tasks", "its speedup", "faster, of correct"}};
  for (double p : kFastPs) lines[0].push_back(cat("fast_", Json(p).dump()));
  lines[0].push_back("candidate / peer");
  int64_t without = 0;
  for (const auto& [level, m] : row.levels) {
    std::vector<std::string> line = {level_name(level)};
    if (m.peer) {
      line.insert(line.end(), {cat(m.peer->tasks), fixed(m.peer->peer_speedup, 2) + "x", rate_text(m.peer->faster)});
      for (const FastShare& share : m.peer->fast) line.push_back(rate_text(share.rate));
      line.push_back(m.peer->faster.n == 0 ? "-" : fixed(m.peer->geometric_mean, 2) + "x");
      if (level == "all") without = m.peer->without;
    }
    while (line.size() < lines[0].size()) line.push_back("not measured");
    lines.push_back(std::move(line));
  }
  return aligned(lines) + (without > 0 ? cat(row.peer, " has no time for ", without, " more tasks\n") : "");
}

std::string rules_table(const ResultsRow& row) {
  auto all = row.levels.find("all");
  if (all == row.levels.end() || all->second.rules.empty()) return "";
  std::vector<std::pair<std::string, int64_t>> rules(all->second.rules.begin(), all->second.rules.end());
  std::stable_sort(rules.begin(), rules.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  Lines lines = {{"failed by", "outcome"}};
  for (const auto& [level, m] : row.levels) lines[0].push_back(level_name(level));
  for (const auto& [rule, count] : rules) {
    auto known = named<Rule>(rule);
    std::vector<std::string> line = {rule, known ? to_string(outcome_of(*known)) : "-"};
    for (const auto& [level, m] : row.levels) {
      auto it = m.rules.find(rule);
      line.push_back(it == m.rules.end() ? "-" : cat(it->second));
    }
    lines.push_back(std::move(line));
  }
  return aligned(lines);
}

std::string operators_table(const ResultsRow& row, size_t most) {
  if (row.operators.empty()) return "";
  std::vector<std::pair<std::string, OperatorMetrics>> operators(row.operators.begin(), row.operators.end());
  std::stable_sort(operators.begin(), operators.end(),
                   [](const auto& a, const auto& b) { return a.second.tasks > b.second.tasks; });
  size_t left_out = operators.size() - std::min(operators.size(), most);
  operators.resize(operators.size() - left_out);
  Lines lines = {{"operator", "tasks", "answers", "correct", "speedup"}};
  for (const auto& [name, m] : operators) {
    lines.push_back({name, cat(m.tasks), cat(m.correct.n), rate_text(m.correct), speedup_text(m.speedup)});
  }
  std::string out = aligned(lines);
  if (left_out > 0) out += cat("and ", left_out, " operators of fewer tasks\n");
  return out;
}

std::string teaching_table(const ResultsRow& row) {
  if (row.teaching.empty()) return "";
  Lines lines = {{"operators of level 1", "tasks", "answers", "correct", "speedup"}};
  for (const auto& [key, words] :
       {std::pair(kTaught, "taught"), std::pair(kNeverSeen, "never seen"), std::pair(kTeachingUnknown, "not known")}) {
    auto it = row.teaching.find(key);
    if (it == row.teaching.end()) continue;
    const OperatorMetrics& m = it->second;
    lines.push_back({words, cat(m.tasks), cat(m.correct.n), rate_text(m.correct), speedup_text(m.speedup)});
  }
  return aligned(lines);
}

std::string all_tables(const ResultsRow& row) {
  std::string out;
  for (const std::string& table : {to_table(row), funnel_table(row), fast_table(row), peer_table(row),
                                   teaching_table(row), rules_table(row), operators_table(row)}) {
    if (!table.empty()) out += (out.empty() ? "" : "\n") + table;
  }
  return out;
}

}  // namespace tritonrl
