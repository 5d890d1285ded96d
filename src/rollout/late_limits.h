// SPDX-License-Identifier: Apache-2.0
// LateLimits: how long a candidate of an RL step may compute before it is late, by what candidates took in the steps
// before. A step waits for its slowest verdict, and the deadlines of verify.* are far beyond what nearly all need.
//
//   limit of a stage = factor x the quantile of own time (verify/sandbox/own_time.h) over the last `window` steps,
//                      never below floor_s; none where that is no less than the stage's deadline, or where fewer than
//                      at_least candidates were seen in it
//
// Seen are different candidates that got through the stage, and those that were late in it: they count as the slow ones
// that they are, so that a limit cannot cut off the times it is drawn from. Where more than a share of 1 - quantile are
// late, the quantile is the limit itself, and the next is `factor` times as long.
//
// A limit is fixed for a step before the first of its candidates is verified, and depends on steps alone that had ended
// when its answers began to be drawn (with staleness 1 that is one step less). So no verdict depends on the order in
// which candidates end, and a run that continues has the limits it had: what a step adds is recorded with it. Own times
// are measured and never the same twice, as the walls' deadlines are; verdicts that hang on either may differ from run
// to run, those far from it do not.
#pragma once

#include <cstdint>
#include <map>
#include <span>

#include "base/error.h"
#include "rollout/sample.h"
#include "verify/stages.h"

namespace tritonrl {

struct LateConfig {
  double factor = 4;
  double quantile = 0.95;
  double floor_s = 15;
  int64_t window = 10;
  int64_t at_least = 100;

  template <class V>
  void for_each_field(V& v) {
    v("factor", factor,
      "a candidate is late (outcome timeout) that computes in a stage for more than so many times what nearly all "
      "take, waiting not counted; 0 = nobody is, the deadlines of verify alone hold");
    v("quantile", quantile, "what nearly all take: this quantile of the candidates that got through the stage");
    v("floor_s", floor_s, "seconds of processor time with which no candidate is late");
    v("window", window, "steps whose candidates are looked at, the last ones before a step");
    v("at_least", at_least, "candidates to have seen in a stage before any is late in it");
  }
  void validate() const;  // Throws Error (usage).
};

// Own times in buckets, each 9 % wider than the one before.
class OwnTimes {
 public:
  void add(double seconds, int64_t count = 1);
  void add(const OwnTimes& other);
  int64_t count() const;
  // The upper edge of the bucket which holds that quantile, in seconds. REQUIRES: count() > 0, 0 < q <= 1.
  double quantile(double q) const;
  Json to_json() const;  // {"bucket": count}
  static OwnTimes from_json(const Json& json);

 private:
  std::map<int64_t, int64_t> buckets_;
};

// Thread rule: one thread.
class LateLimits {
 public:
  // `deadlines` = of the stages that are limited, in seconds. `staleness` as in rollout/rollout_source.h.
  LateLimits(LateConfig config, std::map<Stage, double> deadlines, int64_t staleness);

  // REQUIRES: the steps that it depends on were observed or restored.
  OwnLimits of_step(int64_t step) const;
  // Verdicts of a round of that step.
  void observe(int64_t step, std::span<const Group> groups);
  // What a step added, for restore().
  Json state(int64_t step) const;
  void restore(int64_t step, const Json& state);

 private:
  const LateConfig config_;
  const std::map<Stage, double> deadlines_;
  const int64_t staleness_;
  std::map<int64_t, std::map<Stage, OwnTimes>> steps_;
};

}  // namespace tritonrl
