// SPDX-License-Identifier: Apache-2.0
#include "verify/execute/choices.h"

#include <algorithm>

#include "base/files/json.h"
#include "base/text.h"

namespace tritonrl {
namespace {

std::vector<const TraceStep*> tuned_launches(const CaseTrace& trace) {
  std::vector<const TraceStep*> found;
  for (const TraceStep& step : trace.tape) {
    if (step.is_launch && step.choices.size() > 1) found.push_back(&step);
  }
  return found;
}

double programs(const TraceChoice& choice) {
  double product = 1;
  for (int64_t size : choice.grid) product *= static_cast<double>(size);
  return product;
}

std::string said(const TraceArg& arg) {
  using Kind = TraceArg::Kind;
  if (arg.kind == Kind::kFloat) return Json(arg.real).dump();
  if (arg.kind == Kind::kInt) return cat(arg.number);
  if (arg.kind == Kind::kBool) return arg.number ? "True" : "False";
  return arg.kind == Kind::kText ? arg.text : "...";
}

std::string difference(const TraceChoice& first, const TraceChoice& other) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < other.args.size(); ++i) {
    if (other.args[i].second == first.args[i].second) continue;
    parts.push_back(cat(other.args[i].first, " = ", said(other.args[i].second)));
  }
  if (other.num_warps != first.num_warps) parts.push_back(cat("num_warps = ", other.num_warps));
  if (other.num_stages != first.num_stages) parts.push_back(cat("num_stages = ", other.num_stages));
  if (parts.empty() && other.grid != first.grid) {
    parts.push_back(cat("grid = (", other.grid[0], ", ", other.grid[1], ", ", other.grid[2], ")"));
  }
  return join(parts, ", ");
}

bool same(const TraceChoice& a, const TraceChoice& b, bool warps) {
  return a.grid == b.grid && a.args == b.args &&
         (!warps || (a.num_warps == b.num_warps && a.num_stages == b.num_stages && a.spec == b.spec));
}

// The first configuration, and of the others those unlike all before them.
std::vector<int64_t> different(const TraceStep& step, bool warps) {
  std::vector<int64_t> found;
  for (size_t i = 0; i < step.choices.size(); ++i) {
    bool known = std::ranges::any_of(found, [&](int64_t earlier) {
      return same(step.choices[static_cast<size_t>(earlier)], step.choices[i], warps);
    });
    if (!known) found.push_back(static_cast<int64_t>(i));
  }
  return found;
}

}  // namespace

std::string choice_name(const TraceFile& file, const CaseTrace& trace, const std::vector<int64_t>& choices) {
  std::vector<std::string> parts;
  size_t number = 0;
  for (const TraceStep* step : tuned_launches(trace)) {
    auto index = static_cast<size_t>(choices[number++ % choices.size()]) % step->choices.size();
    std::string what = difference(step->choices[0], step->choices[index]);
    std::string one = cat(file.kernels[static_cast<size_t>(step->kernel)].name, ": ", what);
    if (!what.empty() && std::ranges::count(parts, one) == 0) parts.push_back(one);
  }
  return join(parts, "; ");
}

std::vector<ChoiceRun> choice_runs(const TraceFile& file, const CaseTrace& trace, bool warps) {
  std::vector<std::vector<int64_t>> all;
  size_t most = 0;
  const auto launches = tuned_launches(trace);
  for (const TraceStep* step : launches) {
    all.push_back(different(*step, warps));
    most = std::max(most, all.back().size());
  }
  std::vector<ChoiceRun> runs;
  for (size_t r = 1; r < most; ++r) {
    ChoiceRun run;
    double first = 0, other = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      run.choices.push_back(all[i][r % all[i].size()]);
      first += programs(launches[i]->choices[0]);
      other += programs(launches[i]->choices[static_cast<size_t>(run.choices.back())]);
    }
    if (first > 0) run.growth = other / first;
    run.name = choice_name(file, trace, run.choices);
    run.asked = r <= kMostChoiceRuns;
    runs.push_back(std::move(run));
  }
  return runs;
}

}  // namespace tritonrl
