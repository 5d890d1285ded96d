// SPDX-License-Identifier: Apache-2.0
// Spent: where the wall time of a question to judge or replayer went, for the debug log.
//
//   Spent spent;  ...  spent.mark("inputs");  ...  spent.mark("forward");  reply["spent"] = spent.json();
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/files/json.h"
#include "base/log.h"

namespace tritonrl {

class Spent {
 public:
  // What went by since the last mark (or the beginning) was spent on `part`, in seconds.
  void mark(const std::string& part) {
    double now = now_s();
    add(part, now - std::exchange(since_, now));
  }
  void add(const std::string& part, double seconds) {
    auto it = std::find_if(parts_.begin(), parts_.end(), [&](const auto& one) { return one.first == part; });
    it == parts_.end() ? void(parts_.emplace_back(part, seconds)) : void(it->second += seconds);
  }
  Json json() const { return parts_; }

 private:
  double since_ = now_s();
  std::vector<std::pair<std::string, double>> parts_;
};

}  // namespace tritonrl
