// SPDX-License-Identifier: Apache-2.0
#include "ext/multi_input/multi_input.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "data/tasks/shape_variants.h"

namespace tritonrl::multi_input {
namespace {

constexpr const char *kOriginal = "original", *kLarger = "larger";

Sizes larger_sizes(const Task& task) {
  if (!task.larger.empty()) return task.larger;
  auto proposals = larger_proposals(size_constants(task.source));
  return proposals.empty() ? Sizes() : proposals.front();
}

// Half as large again, and no two alike: odd, so that no block size divides them, and equal sizes under different names
// part, so that one cannot stand for the other.
Sizes uneven_sizes(const Task& task) {
  Sizes sizes = size_constants(task.source);
  int64_t place = 0;
  for (auto& [name, value] : sizes) value = ((value + std::max<int64_t>(1, value / 2)) | 1) + 2 * place++;
  return sizes;
}

CaseSpec additional(const std::string& name, const Task& task) {
  CaseSpec spec;
  spec.name = name;
  spec.additional = true;
  if (name == kLarger) {
    spec.constants = uneven_sizes(task);
    spec.other_scalars = true;
    if (spec.constants.empty()) spec.not_possible = "the task names no sizes";
  } else if (name == "precision") {
    spec.other_precision = true;
  } else {
    // What values show does not depend on sizes; where there are small ones, they are cheap.
    bool small = !task.tiny.empty() && name != "reseeded" && name != "doubled";
    spec.trace = small ? "tiny" : "full";
    if (name != "reseeded") spec.values = name;
  }
  return spec;
}

}  // namespace

std::vector<std::string> known_cases() {
  std::vector<std::string> names = {kOriginal, "doubled", "reseeded", "larger", "precision"};
  for (const char* transform : kValueTransforms) {
    if (std::find(names.begin(), names.end(), transform) == names.end()) names.emplace_back(transform);
  }
  return names;
}

void MultiInput::Config::validate() const {
  auto known = known_cases();
  if (list.empty() || list[0] != kOriginal) {
    throw usage_error("the list of cases does not begin with original", "", "the others only add to it");
  }
  for (const std::string& name : list) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw usage_error(cat("case '", name, "' is not known"), "", cat("known: ", join(known, ", ")));
    }
  }
  if (std::set<std::string>(list.begin(), list.end()).size() < list.size()) {
    throw usage_error("a case is named twice");
  }
  if (count < 0 || count > static_cast<int64_t>(list.size())) {
    throw usage_error(cat("there are ", list.size(), " cases, not ", count), "", "count: 0 takes all");
  }
}

MultiInput::MultiInput(int64_t seeds, const Config& config) : list_(config.list), seeds_(seeds) {
  config.validate();
  if (config.count > 0) list_.resize(static_cast<size_t>(config.count));
}

std::vector<CaseSpec> MultiInput::cases(const Task& task) const {
  std::vector<CaseSpec> out = OriginalCases(seeds_).cases(task);
  for (const std::string& name : list_) {
    if (name != kOriginal) out.push_back(additional(name, task));
    if (name != kLarger || out.back().constants.empty()) continue;
    CaseSpec even = out.back();  // Where sizes have to keep a ratio.
    even.name = cat(kLarger, "_in_ratio");
    even.constants = larger_sizes(task);
    even.instead_of = kLarger;
    if (!even.constants.empty()) out.push_back(std::move(even));
  }
  return out;
}

}  // namespace tritonrl::multi_input
