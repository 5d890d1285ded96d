// SPDX-License-Identifier: Apache-2.0
#include "eval/metrics.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/check.h"
#include "base/files/json_fields.h"
#include "base/rng.h"
#include "base/text.h"

namespace tritonrl {

namespace {

constexpr uint64_t kBootstrapSeed = 20240607;
constexpr int64_t kPassAtKs[] = {1, 3, 5, 10};

struct TaskCount {
  int64_t n = 0, correct = 0;  // Scored samples, correct ones.
  double rate() const { return static_cast<double>(correct) / static_cast<double>(n); }
};

// Ordered by task id, so that resampling does not depend on the order of the records.
std::map<std::string, TaskCount> count_by_task(const std::vector<const EvalRecord*>& records) {
  std::map<std::string, TaskCount> counts;
  for (const EvalRecord* record : records) {
    if (record->turn > 1 || record->verdict.is_harness_fault()) continue;
    auto& count = counts[record->task_id];
    ++count.n;
    count.correct += record->verdict.correct();
  }
  return counts;
}

// 95 % percentile bootstrap of the mean of `values`. REQUIRES: values not empty.
Interval bootstrap_mean(const std::vector<double>& values, std::string_view stream) {
  Rng rng = Rng(kBootstrapSeed).at(stream);
  auto n = static_cast<int64_t>(values.size());
  std::vector<double> means;
  means.reserve(kBootstrapResamples);
  for (int resample = 0; resample < kBootstrapResamples; ++resample) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += values[static_cast<size_t>(rng.below(n))];
    means.push_back(sum / static_cast<double>(n));
  }
  return {percentile(means, 2.5), percentile(means, 97.5)};
}

std::vector<PassAtK> pass_at_all(const std::map<std::string, TaskCount>& counts) {
  std::vector<PassAtK> result;
  for (int64_t k : kPassAtKs) {
    std::vector<double> per_task;
    for (const auto& [id, count] : counts) {
      if (count.n >= k) per_task.push_back(pass_at_k(count.n, count.correct, k));
    }
    if (per_task.empty()) continue;
    result.push_back(
        {k, mean(per_task), bootstrap_mean(per_task, cat("pass@", k)), static_cast<int64_t>(per_task.size())});
  }
  return result;
}

std::vector<Rate> correct_within(const std::vector<const EvalRecord*>& records) {
  constexpr int64_t kNever = INT64_MAX;
  struct Conversation {
    int64_t correct = kNever, fault = kNever;  // The first turn with such a verdict.
  };
  std::map<std::pair<std::string, int64_t>, Conversation> conversations;
  int64_t turns = 1;
  for (const EvalRecord* record : records) {
    turns = std::max(turns, record->turn);
    Conversation& one = conversations[{record->task_id, record->sample_index}];
    if (record->verdict.correct()) one.correct = std::min(one.correct, record->turn);
    if (record->verdict.is_harness_fault()) one.fault = std::min(one.fault, record->turn);
  }
  if (turns == 1) return {};
  std::vector<Rate> rates(static_cast<size_t>(turns));
  for (int64_t t = 1; t <= turns; ++t) {
    Rate& rate = rates[static_cast<size_t>(t - 1)];
    for (const auto& [key, one] : conversations) {
      rate.k += one.correct <= t;
      rate.n += one.correct <= t || one.fault > t;
    }
  }
  return rates;
}

std::vector<const EvalRecord*> select(const std::vector<EvalRecord>& records, int level) {
  std::vector<const EvalRecord*> selected;
  for (const auto& record : records) {
    if (level == 0 || record.level == level) selected.push_back(&record);
  }
  return selected;
}

std::set<int> levels_of(const std::vector<EvalRecord>& records) {
  std::set<int> levels;
  for (const auto& record : records) levels.insert(record.level);
  return levels;
}

}  // namespace

LevelMetrics summarise(const std::vector<const EvalRecord*>& records) {
  LevelMetrics m;
  double tokens = 0;
  std::vector<double> logs;
  SpeedupStats speedup;
  for (const EvalRecord* record : records) {
    const Verdict& verdict = record->verdict;
    if (record->turn > 1) continue;
    if (verdict.is_harness_fault()) {
      ++m.harness_faults;
      continue;
    }
    ++m.samples;
    m.valid.k += verdict.valid();
    m.compiled.k += verdict.compiled();
    m.correct.k += verdict.correct();
    m.truncated.k += record->finished == "length";
    tokens += static_cast<double>(record->tokens);
    ++m.outcomes[to_string(verdict.outcome)];
    if (!verdict.correct()) {
      ++m.stopped_at[to_string(verdict.stopped_at)];
    } else if (verdict.speedup) {
      CHECK(std::isfinite(*verdict.speedup) && *verdict.speedup > 0)
          << verdict.candidate_id << ": " << *verdict.speedup;
      logs.push_back(std::log(*verdict.speedup));
      ++speedup.faster.n;
      speedup.faster.k += *verdict.speedup > 1.0;
    }
  }
  m.valid.n = m.compiled.n = m.correct.n = m.truncated.n = m.samples;
  if (m.samples > 0) m.mean_tokens = tokens / static_cast<double>(m.samples);
  if (speedup.faster.n > 0) {
    std::sort(logs.begin(), logs.end());  // The same bits whatever the order of the records.
    speedup.geometric_mean = std::exp(mean(logs));
    m.speedup = speedup;
  }
  auto counts = count_by_task(records);
  m.tasks = static_cast<int64_t>(counts.size());
  m.pass_at = pass_at_all(counts);
  m.correct_within = correct_within(records);
  return m;
}

ResultsRow make_row(const std::string& model, const std::vector<EvalRecord>& records) {
  ResultsRow row{model, {}};
  for (int level : levels_of(records)) row.levels[cat(level)] = summarise(select(records, level));
  row.levels["all"] = summarise(select(records, 0));
  return row;
}

RateDifference compare_correct(const std::string& name_a, const std::vector<EvalRecord>& a, const std::string& name_b,
                               const std::vector<EvalRecord>& b, int level) {
  RateDifference result{name_a, name_b, level == 0 ? "all" : cat(level), 0, 0, {}};
  auto counts_a = count_by_task(select(a, level)), counts_b = count_by_task(select(b, level));
  std::vector<double> differences;
  for (const auto& [id, count] : counts_a) {
    auto other = counts_b.find(id);
    if (other != counts_b.end()) differences.push_back(other->second.rate() - count.rate());
  }
  result.tasks = static_cast<int64_t>(differences.size());
  if (differences.empty()) return result;
  result.difference = mean(differences);
  result.interval = bootstrap_mean(differences, "compare");
  return result;
}

std::vector<RateDifference> compare_levels(const std::string& name_a, const std::vector<EvalRecord>& a,
                                           const std::string& name_b, const std::vector<EvalRecord>& b) {
  std::vector<RateDifference> result;
  auto levels_b = levels_of(b);
  for (int level : levels_of(a)) {
    if (levels_b.contains(level)) result.push_back(compare_correct(name_a, a, name_b, b, level));
  }
  result.push_back(compare_correct(name_a, a, name_b, b));
  return result;
}

// ---- JSON ----

namespace {

// Counts beyond this are damage; sums of counts below it cannot overflow.
constexpr int64_t kLargestCount = 1000000000000;

std::string no_counts(std::initializer_list<int64_t> numbers) {
  bool fine = std::ranges::all_of(numbers, [](int64_t n) { return n >= 0 && n <= kLargestCount; });
  return fine ? "" : "a number is not a count";
}

template <NamedEnum E>
std::string no_counts(const std::map<std::string, int64_t>& counts) {
  for (const auto& [name, count] : counts) {
    if (!named<E>(name)) return cat("unknown name \"", name, "\"");
    if (std::string problem = no_counts({count}); !problem.empty()) return problem;
  }
  return "";
}

}  // namespace

std::string Rate::problem() const { return k > n ? "it has k > n" : no_counts({k, n}); }
std::string PassAtK::problem() const { return no_counts({k, tasks}); }
std::string RateDifference::problem() const { return no_counts({tasks}); }
std::string LevelMetrics::problem() const {
  return no_counts({samples, tasks, harness_faults}) + no_counts<Outcome>(outcomes) + no_counts<Stage>(stopped_at);
}

Json to_json(const ResultsRow& row) { return {{"model", row.model}, {"levels", json_of(row.levels)}}; }

std::string to_table(const ResultsRow& row) {
  auto percent = [](double share, int digits) { return fixed(100 * share, digits); };
  auto rate = [&](const Rate& r) {
    if (r.n == 0) return std::string("-");
    Interval i = r.interval();
    return cat(percent(static_cast<double>(r.k) / static_cast<double>(r.n), 1), " % (", percent(i.low, 0), "-",
               percent(i.high, 0), ")");
  };
  std::set<int64_t> ks;
  for (const auto& [level, m] : row.levels) {
    for (const PassAtK& p : m.pass_at) ks.insert(p.k);
  }
  std::vector<std::vector<std::string>> lines = {{row.model, "tasks", "answers", "valid", "compiled", "correct"}};
  for (int64_t k : ks) lines[0].push_back(cat("pass@", k));
  size_t turns = 0;
  for (const auto& [level, m] : row.levels) turns = std::max(turns, m.correct_within.size());
  if (turns > 1) lines[0].push_back(cat("within ", turns, " turns"));
  lines[0].push_back("speedup");
  int64_t faults = 0;
  for (const auto& [level, m] : row.levels) {
    std::vector<std::string> line = {level == "all" ? level : "level " + level,
                                     cat(m.tasks),
                                     cat(m.samples),
                                     rate(m.valid),
                                     rate(m.compiled),
                                     rate(m.correct)};
    for (int64_t k : ks) {
      auto it = std::find_if(m.pass_at.begin(), m.pass_at.end(), [&](const PassAtK& p) { return p.k == k; });
      line.push_back(it == m.pass_at.end() ? "-" : percent(it->value, 1) + " %");
    }
    if (turns > 1) line.push_back(m.correct_within.empty() ? "-" : rate(m.correct_within.back()));
    line.push_back(m.speedup ? fixed(m.speedup->geometric_mean, 2) + "x" : "not measured");
    lines.push_back(std::move(line));
    if (level == "all") faults = m.harness_faults;
  }
  std::vector<size_t> widths(lines[0].size());
  for (const auto& line : lines) {
    for (size_t c = 0; c < line.size(); ++c) widths[c] = std::max(widths[c], line[c].size());
  }
  std::string out;
  for (const auto& line : lines) {
    for (size_t c = 0; c < line.size(); ++c) {
      std::string blank(widths[c] - line[c].size(), ' ');
      out += c == 0 ? line[c] + blank : "  " + blank + line[c];  // Numbers stand to the right.
    }
    out += "\n";
  }
  if (faults > 0) out += cat(faults, " more answers have no verdict: the verifier failed on them\n");
  return out;
}

ResultsRow results_row_from_json(const Json& json, const std::string& where) {
  ResultsRow row;
  std::map<std::string, Json> levels;
  JsonReader in(json, "a row", where);
  in("model", row.model);
  in("levels", levels);
  for (const auto& [name, metrics] : levels) {
    row.levels[name] = from_json<LevelMetrics>(metrics, cat("level ", name, " of ", row.model), where);
  }
  return row;
}

Json to_json(const RateDifference& comparison) { return json_of(comparison); }

RateDifference comparison_from_json(const Json& json, const std::string& where) {
  return from_json<RateDifference>(json, "a comparison", where);
}

Json results_to_json(const std::vector<ResultsRow>& rows, const std::vector<RateDifference>& comparisons) {
  Json json = {{"rows", Json::array()}, {"comparisons", json_of(comparisons)}};
  for (const auto& row : rows) json["rows"].push_back(to_json(row));
  return json;
}

}  // namespace tritonrl
