// SPDX-License-Identifier: Apache-2.0
// Effects: what a setting does to a measure, out of the cells of a factorial experiment.
//
// A cell is one run: a value for every axis, a seed, and for one measure a value for every task it was evaluated on (or
// one value, under the task ""). Runs that differ only in the axis in question form a block; seeds of the same setting
// are averaged first. An effect is the mean over blocks and tasks of the difference. Its standard error is a
// bootstrap's (2,000 resamples, fixed seed) that draws blocks and tasks anew, because both the training of a run and
// the choice of tasks are chance; its 95 % interval is Student's with as many degrees of freedom as blocks allow, the
// error widened by sqrt(B / (B - 1)) for B blocks, since percentiles of few blocks would be too narrow. Blocks that
// lack a run (it failed) are left out. Pure functions; links no torch.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/stats.h"

namespace tritonrl {

using AxisValues = std::map<std::string, std::string>;  // Axis -> value.

struct CellMeasure {
  AxisValues setting;
  int64_t seed = 0;
  std::map<std::string, double> tasks;  // What was measured on each task.
};

struct Effect {
  std::string name;  // "multi_input on", "multi_input on x staged on".
  double difference = 0;
  Interval interval;              // Of one block: over tasks alone.
  int64_t blocks = 0, tasks = 0;  // 0 blocks = nothing to compare; then the rest means nothing.
  bool measurable() const { return blocks > 1 && (interval.low > 0 || interval.high < 0); }
};

// Of `value` against `base` on one axis.
Effect main_effect(const std::vector<CellMeasure>& cells, const std::string& axis, const std::string& base,
                   const std::string& value);
// How much more (or less) the change on one axis does when the other is changed too: the difference of the differences.
Effect interaction(const std::vector<CellMeasure>& cells, const std::string& axis_a, const std::string& base_a,
                   const std::string& value_a, const std::string& axis_b, const std::string& base_b,
                   const std::string& value_b);

}  // namespace tritonrl
