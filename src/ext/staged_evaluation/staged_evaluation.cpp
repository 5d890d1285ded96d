// SPDX-License-Identifier: Apache-2.0
#include "ext/staged_evaluation/staged_evaluation.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace tritonrl::staged_evaluation {

namespace {

constexpr std::array<Stage, kStageCount> kCheapToDear = {Stage::kExtract, Stage::kSyntax,  Stage::kCompile,
                                                         Stage::kTinyRun, Stage::kFullRun, Stage::kTime};

}  // namespace

std::optional<Stage> Staged::next(const std::vector<StageResult>& done) const {
  if (done.empty()) return kCheapToDear.front();
  if (!done.back().finding.passed()) return std::nullopt;
  auto after = std::next(std::find(kCheapToDear.begin(), kCheapToDear.end(), done.back().stage));
  return after == kCheapToDear.end() ? std::nullopt : std::optional(*after);
}

}  // namespace tritonrl::staged_evaluation
