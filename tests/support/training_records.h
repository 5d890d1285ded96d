// SPDX-License-Identifier: Apache-2.0
// What a training run wrote down, for comparing two of them.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/files/json.h"

namespace tritonrl {

// Everything that training brought, but for times and memory.
inline std::vector<Json> steps_of(const std::filesystem::path& run) {
  std::map<std::pair<std::string, int64_t>, Json> last;  // A step that was begun twice counts as it was done.
  for_each_json_line(run / "steps.jsonl", [&](int64_t, const Json& line) {
    Json kept = Json::object();
    for (const auto& [key, value] : line.items()) {
      bool measured = key == "seconds" || key == "time" || key.starts_with("time/") || key.starts_with("memory/") ||
                      key.ends_with("_per_s");
      if (!measured) kept[key] = value;
    }
    // Where a supervised run was stopped is no result of it.
    if (line.at("phase") == "sft") kept["unit"] = "sft";
    last[{line.at("phase").get<std::string>() + "|" + kept.at("unit").get<std::string>(), line.at("step")}] = kept;
  });
  std::vector<Json> out;
  for (auto& [key, line] : last) out.push_back(std::move(line));
  return out;
}

}  // namespace tritonrl
