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

// Over correct samples that were timed; empty where none was.
std::optional<SpeedupStats> speedup_of(const std::vector<const EvalRecord*>& records) {
  std::vector<double> logs;
  SpeedupStats stats;
  for (const EvalRecord* record : records) {
    const Verdict& verdict = record->verdict;
    if (record->turn > 1 || !verdict.correct() || !verdict.speedup) continue;
    CHECK(std::isfinite(*verdict.speedup) && *verdict.speedup > 0) << verdict.candidate_id << ": " << *verdict.speedup;
    logs.push_back(std::log(*verdict.speedup));
    ++stats.faster.n;
    stats.faster.k += *verdict.speedup > 1.0;
  }
  if (logs.empty()) return std::nullopt;
  std::sort(logs.begin(), logs.end());  // The same bits whatever the order of the records.
  stats.geometric_mean = std::exp(mean(logs));
  return stats;
}

// Where nothing could be timed (no GPU), or a correct sample was not, there is no fast_p.
std::vector<FastShare> fast_shares(const std::vector<const EvalRecord*>& records) {
  bool measures = false;
  int64_t n = 0;
  std::vector<double> speedups;
  for (const EvalRecord* record : records) {
    const Verdict& verdict = record->verdict;
    if (record->turn > 1 || verdict.is_harness_fault()) continue;
    ++n;
    measures |= verdict.path == VerifyPath::kReplay || verdict.speedup.has_value();
    if (!verdict.correct()) continue;
    if (!verdict.speedup) return {};
    speedups.push_back(*verdict.speedup);
  }
  if (!measures) return {};
  std::vector<FastShare> shares;
  for (double p : kFastPs) {
    shares.push_back({p, {std::count_if(speedups.begin(), speedups.end(), [p](double s) { return s > p; }), n}});
  }
  return shares;
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
  int64_t lengths = 0;
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
    if (!record->finished.empty()) {
      ++lengths;
      m.truncated.k += record->finished == "length";
      tokens += static_cast<double>(record->tokens);
    }
    ++m.outcomes[to_string(verdict.outcome)];
    if (verdict.correct()) continue;
    ++m.stopped_at[to_string(verdict.stopped_at)];
    ++m.rules[name_of(verdict.finding().rule())];
  }
  m.valid.n = m.compiled.n = m.correct.n = m.samples;
  m.truncated.n = lengths;
  if (lengths > 0) m.mean_tokens = tokens / static_cast<double>(lengths);
  m.speedup = speedup_of(records);
  m.fast = fast_shares(records);
  auto counts = count_by_task(records);
  m.tasks = static_cast<int64_t>(counts.size());
  m.pass_at = pass_at_all(counts);
  m.correct_within = correct_within(records);
  return m;
}

std::map<std::string, OperatorMetrics> by_operator(const std::vector<EvalRecord>& records,
                                                   const TaskOperators& operators) {
  std::map<std::string, std::vector<const EvalRecord*>> of_operator;
  for (const EvalRecord& record : records) {
    auto known = operators.find(record.task_id);
    if (known == operators.end()) continue;
    for (const std::string& name : known->second) of_operator[name].push_back(&record);
  }
  std::map<std::string, OperatorMetrics> all;
  for (const auto& [name, chosen] : of_operator) {
    OperatorMetrics m;
    for (const auto& [task, count] : count_by_task(chosen)) {
      ++m.tasks;
      m.correct.k += count.correct;
      m.correct.n += count.n;
    }
    m.speedup = speedup_of(chosen);
    if (m.tasks > 0) all[name] = m;
  }
  return all;
}

ResultsRow make_row(const std::string& model, const std::vector<EvalRecord>& records, const TaskOperators& operators) {
  ResultsRow row;
  row.model = model;
  row.operators = by_operator(records, operators);
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
Rate LevelMetrics::through(Stage stage) const {
  Rate rate{samples, samples};
  for (int s = 0; s <= static_cast<int>(stage); ++s) {
    auto it = stopped_at.find(to_string(static_cast<Stage>(s)));
    if (it != stopped_at.end()) rate.k -= it->second;
  }
  return rate;
}

std::string OperatorMetrics::problem() const { return no_counts({tasks}); }
std::string PeerMetrics::problem() const { return no_counts({tasks, without}); }
std::string PassAtK::problem() const { return no_counts({k, tasks}); }
std::string RateDifference::problem() const { return no_counts({tasks}); }
std::string LevelMetrics::problem() const {
  return no_counts({samples, tasks, harness_faults}) + no_counts<Outcome>(outcomes) + no_counts<Stage>(stopped_at) +
         no_counts<Rule>(rules);
}

Json to_json(const ResultsRow& row) {
  Json json = {{"model", row.model}, {"levels", json_of(row.levels)}};
  if (!row.operators.empty()) json["operators"] = json_of(row.operators);
  if (!row.peer.empty()) json["peer"] = row.peer;
  if (!row.teaching.empty()) json["teaching"] = json_of(row.teaching);
  if (row.compared_with_training) json["compared_with_training"] = *row.compared_with_training;
  return json;
}

ResultsRow results_row_from_json(const Json& json, const std::string& where) {
  ResultsRow row;
  std::map<std::string, Json> levels, operators, teaching;
  JsonReader in(json, "a row", where);
  in("model", row.model);
  in("levels", levels);
  in.optional("operators", operators);
  in.optional("peer", row.peer);
  in.optional("teaching", teaching);
  in.optional("compared_with_training", row.compared_with_training);
  for (const auto& [name, metrics] : levels) {
    row.levels[name] = from_json<LevelMetrics>(metrics, cat("level ", name, " of ", row.model), where);
  }
  for (const auto& [name, metrics] : operators) {
    row.operators[name] = from_json<OperatorMetrics>(metrics, cat("operator ", name, " of ", row.model), where);
  }
  for (const auto& [name, metrics] : teaching) {
    row.teaching[name] = from_json<OperatorMetrics>(metrics, cat("teaching ", name, " of ", row.model), where);
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
