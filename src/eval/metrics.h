// SPDX-License-Identifier: Apache-2.0
// Metrics: turns the verdicts of an evaluation into rates with intervals, pass@k, fast_p and speedups, per level, per
// operator and overall. tables.h prints them.
//
// What every number counts: a harness fault is our failure, says nothing about the model, and is left out of n; how
// many there were is kept beside n. Everything else a candidate can end with, unsupported included, stays in n as "not
// correct". Rates carry Wilson intervals over samples. Samples of one task are not independent, so those are a little
// too narrow when few tasks carry many samples; pass@k and differences between models resample whole tasks instead.
// Pure functions of their arguments: same records in any order, same numbers. Links no torch (the report room needs
// it).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/files/json.h"
#include "base/stats.h"
#include "rollout/record.h"

namespace tritonrl {

// k of n, with its 95 % Wilson interval ([0, 1] for n = 0).
struct Rate {
  int64_t k = 0, n = 0;
  double value() const { return n == 0 ? 0 : static_cast<double>(k) / static_cast<double>(n); }
  Interval interval() const { return wilson(k, n); }
  bool operator==(const Rate&) const = default;

  template <class Self, class V>
  static void json_fields(Self& self, V& v) {
    v("k", self.k);
    v("n", self.n);
    v.note("rate", [&] { return self.value(); });
    v.note("low", [&] { return self.interval().low; });
    v.note("high", [&] { return self.interval().high; });
  }
  std::string problem() const;
};

// Mean of the unbiased pass@k over the tasks that have at least k scored samples. The 95 % interval is a percentile
// bootstrap over those tasks; it collapses to a point when all tasks agree.
struct PassAtK {
  int64_t k = 1;
  double value = 0;
  Interval interval;
  int64_t tasks = 0;

  template <class Self, class V>
  static void json_fields(Self& self, V& v) {
    v("k", self.k);
    v("value", self.value);
    v("low", self.interval.low);
    v("high", self.interval.high);
    v("tasks", self.tasks);
  }
  std::string problem() const;
};

// Over the correct samples that were timed. Absent as a whole when none was.
struct SpeedupStats {
  double geometric_mean = 1;  // Reference time / candidate time.
  Rate faster;                // k = speedup > 1.0, n = timed.

  template <class Self, class V>
  static void json_fields(Self& self, V& v) {
    v("geometric_mean", self.geometric_mean);
    v("faster", self.faster);
  }
};

// fast_p (Ouyang et al., "KernelBench: Can LLMs write efficient GPU kernels?", 2025): the share of all scored samples
// that are correct and more than p times as fast as the reference. A ratio within the noise of timing is 1.
struct FastShare {
  double p = 1;
  Rate rate;
  bool operator==(const FastShare&) const = default;

  template <class Self, class V>
  static void json_fields(Self& self, V& v) {
    v("p", self.p);
    v("rate", self.rate);
  }
};

// Of the tasks that use an operator; one of several operators is in the rows of all of them.
struct OperatorMetrics {
  int64_t tasks = 0;  // With at least one scored sample.
  Rate correct;
  std::optional<SpeedupStats> speedup;

  template <class Self, class V>
  static void json_fields(Self& self, V& v) {
    v("tasks", self.tasks);
    v("correct", self.correct);
    v("speedup", self.speedup);
  }
  std::string problem() const;
};

// Beside a peer that was timed against the same reference (peer.h): of tasks for which it has a time.
struct PeerMetrics {
  int64_t tasks = 0, without = 0;  // With a scored sample: those of the peer, and those it has no time for.
  double peer_speedup = 1;         // Geometric mean over those tasks: reference time / the peer's time.
  Rate faster;                     // k = correct samples faster than the peer, n = correct samples.
  // Reference: the peer. k = correct samples more than p times as fast as it, n = scored samples.
  std::vector<FastShare> fast;
  double geometric_mean = 1;  // Over correct samples: the peer's time / the candidate's.
  bool operator==(const PeerMetrics&) const = default;

  template <class Self, class V>
  static void json_fields(Self& self, V& v) {
    v("tasks", self.tasks);
    v("without", self.without);
    v("peer_speedup", self.peer_speedup);
    v("faster", self.faster);
    v("fast", self.fast);
    v("geometric_mean", self.geometric_mean);
  }
  std::string problem() const;
};

struct LevelMetrics {
  int64_t samples = 0;         // Scored samples: n of every rate here.
  int64_t tasks = 0;           // Tasks with at least one scored sample.
  int64_t harness_faults = 0;  // Samples left out of `samples`.
  Rate valid, compiled, correct, truncated;
  // [t - 1] = conversations with a correct answer at one of the first t turns; empty = there was one turn only. Left
  // out of n are those that a harness fault kept from it. All else here is about first answers.
  std::vector<Rate> correct_within;
  std::vector<PassAtK> pass_at;         // Ascending k, of kPassAtKs those that any task has enough samples for.
  std::optional<SpeedupStats> speedup;  // Empty = not measured.
  std::vector<FastShare> fast;          // One for each of kFastPs; empty = not measured: a correct sample has no time.
  std::map<std::string, int64_t> outcomes;    // Outcome name -> scored samples; only names that occurred.
  std::map<std::string, int64_t> stopped_at;  // Stage name -> scored samples that ended there without passing.
  std::map<std::string, int64_t> rules;       // Name of the rule that was broken -> scored samples.
  std::optional<PeerMetrics> peer;            // Empty = no peer, or a correct sample has no time.
  double mean_tokens = 0;                     // Mean answer length of the scored samples whose length is known.

  Rate through(Stage stage) const;  // Scored samples that got through it and those before it.

  template <class Self, class V>
  static void json_fields(Self& self, V& v) {
    v("samples", self.samples);
    v("tasks", self.tasks);
    v("harness_faults", self.harness_faults);
    v("valid", self.valid);
    v("compiled", self.compiled);
    v("correct", self.correct);
    v("truncated", self.truncated);
    v("mean_tokens", self.mean_tokens);
    v("outcomes", self.outcomes);
    v("stopped_at", self.stopped_at);
    v("pass_at", self.pass_at);
    v.optional("correct_within", self.correct_within);
    v("speedup", self.speedup);
    v.optional("fast", self.fast);
    v.optional("rules", self.rules);
    v.optional("peer", self.peer);
  }
  std::string problem() const;
};

// One row of results.json.
struct ResultsRow {
  std::string model;                                 // "base", "sft", "rl", ...
  std::map<std::string, LevelMetrics> levels;        // "1", "2", ... and "all".
  std::map<std::string, OperatorMetrics> operators;  // Empty = the tasks' operators are not known.
  std::string peer = {};                             // What levels were compared with: "torch.compile (default)".
  // Tasks of level 1 by whether their operators had training tasks: kTaught, kNeverSeen, kTeachingUnknown. Empty = the
  // training set is not known.
  std::map<std::string, OperatorMetrics> teaching = {};
  // Was every task compared with the model's training set (data.exclude)? Empty = the training set is not known.
  std::optional<bool> compared_with_training = {};
};
constexpr const char* kTaught = "taught";
constexpr const char* kNeverSeen = "never_seen";
constexpr const char* kTeachingUnknown = "not_known";

constexpr std::array<int64_t, 7> kPassAtKs = {1, 3, 5, 10, 20, 50, 100};
constexpr std::array<double, 4> kFastPs = {0.8, 1, 1.2, 2};

// Operators of each task, by id.
using TaskOperators = std::map<std::string, std::set<std::string>>;

LevelMetrics summarise(const std::vector<const EvalRecord*>& records);
// A record counts for each operator of its task.
std::map<std::string, OperatorMetrics> by_operator(const std::vector<EvalRecord>& records,
                                                   const TaskOperators& operators);
ResultsRow make_row(const std::string& model, const std::vector<EvalRecord>& records,
                    const TaskOperators& operators = {});

// Difference in correct rate, b minus a, on the tasks both were scored on: mean over tasks of the difference between
// the two task rates, with a 95 % paired bootstrap interval (2,000 resamples of tasks, fixed seed).
struct RateDifference {
  std::string a, b, level;  // Model names; level is "1", "2", ... or "all".
  int64_t tasks = 0;        // 0 = nothing in common; then the rest means nothing.
  double difference = 0;    // In [-1, 1].
  Interval interval;

  template <class Self, class V>
  static void json_fields(Self& self, V& v) {
    v("a", self.a);
    v("b", self.b);
    v("level", self.level);
    v("tasks", self.tasks);
    v("difference", self.difference);
    v("low", self.interval.low);
    v("high", self.interval.high);
  }
  std::string problem() const;
};
constexpr int kBootstrapResamples = 2000;

// level 0 = all levels.
RateDifference compare_correct(const std::string& name_a, const std::vector<EvalRecord>& a, const std::string& name_b,
                               const std::vector<EvalRecord>& b, int level = 0);
// One comparison per level that both have, then one over all.
std::vector<RateDifference> compare_levels(const std::string& name_a, const std::vector<EvalRecord>& a,
                                           const std::string& name_b, const std::vector<EvalRecord>& b);

// {"model": "sft", "levels": {"1": {...}, "all": {...}}, "operators": {"relu": {...}}}, the last where they are known,
// as is "teaching": {"taught": {...}, "never_seen": {...}} and "compared_with_training": true.
// Rates are {"k", "n", "rate", "low", "high"}; reading trusts k
// and n and works the rest out again. Readers throw Error (usage) for missing or impossible fields; `where` goes into
// it.
Json to_json(const ResultsRow& row);
ResultsRow results_row_from_json(const Json& json, const std::string& where);
Json to_json(const RateDifference& comparison);
RateDifference comparison_from_json(const Json& json, const std::string& where);

// The whole of results.json: {"rows": [...], "comparisons": [...]}.
Json results_to_json(const std::vector<ResultsRow>& rows, const std::vector<RateDifference>& comparisons);

}  // namespace tritonrl
