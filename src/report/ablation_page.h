// SPDX-License-Identifier: Apache-2.0
// The page of an ablation: what each axis does, measure by measure, and the cells it rests on.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "eval/effects.h"
#include "eval/metrics.h"

namespace tritonrl {

struct AblationPage {
  struct Cell {
    std::vector<std::string> setting;  // In the order of `axes`.
    int64_t seed = 1;
    std::string status;                      // "done", "failed", "missing".
    std::map<std::string, double> measures;  // Key of the measure -> mean over tasks.
    std::vector<RateDifference> gains;       // What RL added to the correct rate, a level each and over all.
    // Level -> RL step -> share of held-out samples that are correct; step 0 is the start.
    std::map<std::string, std::map<int64_t, double>> heldout;
  };
  struct Shown {
    Effect effect;
    std::string sentence;
  };
  struct Measure {
    std::string key, words, unit;
    double scale = 1;  // What values are multiplied by to be shown in `unit`.
    std::vector<Shown> effects;
  };
  std::string name;
  std::vector<std::string> axes;
  std::vector<Cell> cells;
  std::vector<Measure> measures;
};

std::string ablation_markdown(const AblationPage& page);
std::string ablation_html(const AblationPage& page);  // Self-contained.

}  // namespace tritonrl
