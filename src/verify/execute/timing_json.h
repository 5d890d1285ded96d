// SPDX-License-Identifier: Apache-2.0
// How a ReadingSpec and Readings travel between verifier, judge and replayer.
#pragma once

#include <vector>

#include "base/files/json.h"
#include "verify/execute/timing_protocol.h"

namespace tritonrl {

inline Json to_json(const ReadingSpec& spec) {
  return {{"warm_ups", spec.warm_ups}, {"batch", spec.batch}, {"cold", spec.cold},
          {"span_s", spec.span_s},     {"clock", spec.clock}, {"readings_per_place", spec.readings_per_place},
          {"budget_s", spec.budget_s}};
}

inline ReadingSpec reading_spec_from_json(const Json& json) {
  return {json.at("warm_ups").get<int64_t>(),
          json.at("batch").get<int64_t>(),
          json.at("cold").get<bool>(),
          json.at("span_s").get<double>(),
          json.at("readings_per_place").get<int64_t>(),
          json.at("clock").get<bool>(),
          json.at("budget_s").get<double>()};
}

// What is no number is null in JSON.
inline Json to_json(const std::vector<Reading>& readings) {
  Json list = Json::array();
  for (const Reading& reading : readings) {
    list.push_back({reading.reference_s, reading.candidate_s, reading.clock_mhz, reading.place, reading.seconds});
  }
  return list;
}

inline std::vector<Reading> readings_from_json(const Json& json) {
  auto number = [](const Json& value) { return value.is_number() ? value.get<double>() : 0.0; };
  std::vector<Reading> readings;
  for (const Json& one : json) {
    readings.push_back(
        {number(one.at(0)), number(one.at(1)), number(one.at(2)), one.at(3).get<int64_t>(), number(one.at(4))});
  }
  return readings;
}

}  // namespace tritonrl
