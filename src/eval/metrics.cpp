// SPDX-License-Identifier: Apache-2.0
#include "eval/metrics.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "base/check.h"
#include "base/error.h"
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

Json rate_json(const Rate& rate) {
  Interval interval = rate.interval();
  return {{"k", rate.k}, {"n", rate.n}, {"rate", rate.value()}, {"low", interval.low}, {"high", interval.high}};
}

// Counts beyond this are damage; sums of counts below it cannot overflow.
constexpr int64_t kLargestCount = 1000000000000;

const Json& field(const Json& json, const char* name, const std::string& where) {
  if (!json.is_object() || !json.contains(name)) throw usage_error(cat("has no field \"", name, "\""), where);
  return json.at(name);
}

double number(const Json& json, const char* name, const std::string& where) {
  const Json& value = field(json, name, where);
  if (!value.is_number()) throw usage_error(cat("field \"", name, "\" is not a number"), where);
  return value.get<double>();
}

int64_t count(const Json& json, const char* name, const std::string& where) {
  const Json& value = field(json, name, where);
  if (!value.is_number_integer() || value.get<int64_t>() < 0 || value.get<int64_t>() > kLargestCount) {
    throw usage_error(cat("field \"", name, "\" is not a count"), where);
  }
  return value.get<int64_t>();
}

std::string text(const Json& json, const char* name, const std::string& where) {
  const Json& value = field(json, name, where);
  if (!value.is_string()) throw usage_error(cat("field \"", name, "\" is not a string"), where);
  return value.get<std::string>();
}

Rate to_rate(const Json& value, const char* name, const std::string& where) {
  Rate rate{count(value, "k", where), count(value, "n", where)};
  if (rate.k > rate.n) throw usage_error(cat("field \"", name, "\" has k > n"), where);
  return rate;
}

Rate rate_from_json(const Json& json, const char* name, const std::string& where) {
  return to_rate(field(json, name, where), name, where);
}

std::map<std::string, int64_t> counts_from_json(const Json& json, const char* name, const std::string& where,
                                                const std::function<bool(const std::string&)>& known) {
  const Json& value = field(json, name, where);
  if (!value.is_object()) throw usage_error(cat("field \"", name, "\" is not an object"), where);
  std::map<std::string, int64_t> counts;
  for (const auto& [key, unused] : value.items()) {
    if (!known(key)) throw usage_error(cat("field \"", name, "\" has an unknown name \"", key, "\""), where);
    counts[key] = count(value, key.c_str(), where);
  }
  return counts;
}

Json level_json(const LevelMetrics& m) {
  Json json = {{"samples", m.samples},
               {"tasks", m.tasks},
               {"harness_faults", m.harness_faults},
               {"valid", rate_json(m.valid)},
               {"compiled", rate_json(m.compiled)},
               {"correct", rate_json(m.correct)},
               {"truncated", rate_json(m.truncated)},
               {"mean_tokens", m.mean_tokens},
               {"outcomes", m.outcomes},
               {"stopped_at", m.stopped_at},
               {"pass_at", Json::array()},
               {"speedup", nullptr}};
  for (const auto& p : m.pass_at) {
    json["pass_at"].push_back(
        {{"k", p.k}, {"value", p.value}, {"low", p.interval.low}, {"high", p.interval.high}, {"tasks", p.tasks}});
  }
  for (const Rate& rate : m.correct_within) json["correct_within"].push_back(rate_json(rate));
  if (m.speedup) {
    json["speedup"] = {{"geometric_mean", m.speedup->geometric_mean}, {"faster", rate_json(m.speedup->faster)}};
  }
  return json;
}

LevelMetrics level_from_json(const Json& json, const std::string& where) {
  LevelMetrics m;
  m.samples = count(json, "samples", where);
  m.tasks = count(json, "tasks", where);
  m.harness_faults = count(json, "harness_faults", where);
  m.valid = rate_from_json(json, "valid", where);
  m.compiled = rate_from_json(json, "compiled", where);
  m.correct = rate_from_json(json, "correct", where);
  m.truncated = rate_from_json(json, "truncated", where);
  m.mean_tokens = number(json, "mean_tokens", where);
  m.outcomes = counts_from_json(json, "outcomes", where,
                                [](const std::string& name) { return outcome_from_string(name).has_value(); });
  m.stopped_at = counts_from_json(json, "stopped_at", where,
                                  [](const std::string& name) { return stage_from_string(name).has_value(); });
  const Json& pass_at = field(json, "pass_at", where);
  if (!pass_at.is_array()) throw usage_error("field \"pass_at\" is not a list", where);
  for (const auto& p : pass_at) {
    m.pass_at.push_back({count(p, "k", where),
                         number(p, "value", where),
                         {number(p, "low", where), number(p, "high", where)},
                         count(p, "tasks", where)});
  }
  if (json.contains("correct_within")) {
    const Json& within = json.at("correct_within");
    if (!within.is_array()) throw usage_error("field \"correct_within\" is not a list", where);
    for (const Json& rate : within) m.correct_within.push_back(to_rate(rate, "correct_within", where));
  }
  const Json& speedup = field(json, "speedup", where);
  if (!speedup.is_null()) {
    m.speedup = SpeedupStats{number(speedup, "geometric_mean", where), rate_from_json(speedup, "faster", where)};
  }
  return m;
}

}  // namespace

Json to_json(const ResultsRow& row) {
  Json levels = Json::object();
  for (const auto& [name, metrics] : row.levels) levels[name] = level_json(metrics);
  return {{"model", row.model}, {"levels", levels}};
}

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
  ResultsRow row{text(json, "model", where), {}};
  const Json& levels = field(json, "levels", where);
  if (!levels.is_object()) throw usage_error("field \"levels\" is not an object", where);
  for (const auto& [name, metrics] : levels.items()) {
    row.levels[name] = level_from_json(metrics, cat(where, ": ", row.model, ", level ", name));
  }
  return row;
}

Json to_json(const RateDifference& c) {
  return {{"a", c.a},
          {"b", c.b},
          {"level", c.level},
          {"tasks", c.tasks},
          {"difference", c.difference},
          {"low", c.interval.low},
          {"high", c.interval.high}};
}

RateDifference comparison_from_json(const Json& json, const std::string& where) {
  return {text(json, "a", where),
          text(json, "b", where),
          text(json, "level", where),
          count(json, "tasks", where),
          number(json, "difference", where),
          {number(json, "low", where), number(json, "high", where)}};
}

Json results_to_json(const std::vector<ResultsRow>& rows, const std::vector<RateDifference>& comparisons) {
  Json json = {{"rows", Json::array()}, {"comparisons", Json::array()}};
  for (const auto& row : rows) json["rows"].push_back(to_json(row));
  for (const auto& comparison : comparisons) json["comparisons"].push_back(to_json(comparison));
  return json;
}

}  // namespace tritonrl
