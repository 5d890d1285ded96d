// SPDX-License-Identifier: Apache-2.0
// Names of stages and outcomes, and verdicts to and from JSON.
#include "verify/verdict.h"

#include <array>
#include <cmath>
#include <type_traits>

#include "base/error.h"
#include "base/text.h"

namespace tritonrl {
namespace {

constexpr std::array<const char*, kStageCount> kStageNames = {"extract",  "syntax",   "compile",
                                                              "tiny_run", "full_run", "time"};
constexpr std::array<const char*, kOutcomeCount> kOutcomeNames = {
    "pass",       "no_code", "syntax_error",  "rule_break", "compile_error", "runtime_error", "wrong_output",
    "not_finite", "timeout", "out_of_memory", "tampered",   "unsupported",   "harness_fault"};
constexpr const char* kSkipped = "skipped";  // In place of a case's outcome.
constexpr std::array<const char*, 3> kPathNames = {"none", "interpreter", "replay"};

template <class Enum, size_t N>
std::optional<Enum> find_name(const std::array<const char*, N>& names, const std::string& name) {
  for (size_t i = 0; i < N; ++i) {
    if (name == names[i]) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

// The member `key` of a JSON object, checked to be of T.
template <class T>
T member(const Json& json, const char* key, const std::string& where) {
  auto it = json.find(key);
  if (it == json.end()) throw usage_error(cat("a verdict lacks \"", key, "\""), where);
  bool fits = false;
  if constexpr (std::is_same_v<T, std::string>) fits = it->is_string();
  if constexpr (std::is_integral_v<T>) fits = it->is_number_integer();
  if constexpr (std::is_floating_point_v<T>) fits = it->is_number();
  if constexpr (std::is_same_v<T, Json>) fits = it->is_array();
  if (!fits) throw usage_error(cat("\"", key, "\" of a verdict has the wrong type"), where);
  return it->get<T>();
}

template <class Enum, class Parse>
Enum named(const Json& json, const char* key, Parse parse, const std::string& where) {
  auto name = member<std::string>(json, key, where);
  auto value = parse(name);
  if (!value) throw usage_error(cat("unknown ", key, " \"", name, "\" in a verdict"), where);
  return *value;
}

std::vector<std::string> strings(const Json& json, const char* key, const std::string& where) {
  std::vector<std::string> out;
  for (const Json& item : member<Json>(json, key, where)) {
    if (!item.is_string()) throw usage_error(cat("\"", key, "\" of a verdict must hold strings"), where);
    out.push_back(item.get<std::string>());
  }
  return out;
}

}  // namespace

const char* to_string(Stage stage) { return kStageNames[static_cast<size_t>(stage)]; }
const char* to_string(Outcome outcome) { return kOutcomeNames[static_cast<size_t>(outcome)]; }
const char* to_string(VerifyPath path) { return kPathNames[static_cast<size_t>(path)]; }
std::optional<Stage> stage_from_string(const std::string& name) { return find_name<Stage>(kStageNames, name); }
std::optional<Outcome> outcome_from_string(const std::string& name) { return find_name<Outcome>(kOutcomeNames, name); }

bool Verdict::passed(Stage stage) const {
  for (const StageResult& result : stages) {
    if (result.stage == stage) return result.finding.passed();
  }
  // A stage that was switched off counts as passed when the candidate went beyond it.
  return stopped_at > stage || (outcome == Outcome::kPass && stopped_at >= stage);
}

const Finding& Verdict::finding() const {
  static const Finding none;
  for (const StageResult& result : stages) {
    if (!result.finding.passed()) return result.finding;
  }
  return none;
}

std::string Verdict::reason() const { return human_text(finding()); }

namespace {

Json timing_json(const std::optional<TimingResult>& timing) {
  if (!timing) return {};
  Json json = {
      {"reference_s", timing->reference_s}, {"candidate_s", timing->candidate_s}, {"ratio", timing->ratio},
      {"speedup", timing->speedup},         {"noise_band", timing->noise_band},   {"readings", timing->readings},
      {"discarded", timing->discarded}};
  if (timing->ratio_low < timing->ratio_high) json["interval"] = {timing->ratio_low, timing->ratio_high};
  if (timing->clock_mhz > 0) json["clock_mhz"] = timing->clock_mhz;
  if (timing->reference_bytes) json["reference_bytes"] = *timing->reference_bytes;
  if (timing->candidate_bytes) json["candidate_bytes"] = *timing->candidate_bytes;
  return json;
}

TimingResult timing_from_json(const Json& json, const std::string& where) {
  TimingResult timing;
  timing.reference_s = member<double>(json, "reference_s", where);
  timing.candidate_s = member<double>(json, "candidate_s", where);
  timing.ratio = member<double>(json, "ratio", where);
  timing.speedup = member<double>(json, "speedup", where);
  timing.noise_band = member<double>(json, "noise_band", where);
  timing.readings = member<int64_t>(json, "readings", where);
  if (json.contains("discarded")) timing.discarded = member<int64_t>(json, "discarded", where);
  if (json.contains("interval")) {
    auto interval = member<Json>(json, "interval", where);
    bool fits = interval.size() == 2 && interval[0].is_number() && interval[1].is_number();
    if (!fits) throw usage_error("a timing's interval is no pair of numbers", where);
    timing.ratio_low = interval[0].get<double>();
    timing.ratio_high = interval[1].get<double>();
  }
  if (json.contains("clock_mhz")) timing.clock_mhz = member<double>(json, "clock_mhz", where);
  if (json.contains("reference_bytes")) timing.reference_bytes = member<int64_t>(json, "reference_bytes", where);
  if (json.contains("candidate_bytes")) timing.candidate_bytes = member<int64_t>(json, "candidate_bytes", where);
  return timing;
}

// "outcome" and "message" are for readers; the finding has it all.
void add_finding(const Finding& finding, Json* json) {
  (*json)["outcome"] = to_string(finding.outcome());
  (*json)["message"] = human_text(finding);
  if (!finding.passed()) (*json)["finding"] = to_json(finding);
}

Finding read_finding(const Json& json, const std::string& where) {
  auto outcome = named<Outcome>(json, "outcome", outcome_from_string, where);
  auto it = json.find("finding");
  if (it == json.end() && outcome != Outcome::kPass) throw usage_error("a verdict lacks a \"finding\"", where);
  Finding finding = it == json.end() ? Finding() : finding_from_json(*it, where);
  if (finding.outcome() == outcome) return finding;
  throw usage_error(cat("a verdict says ", to_string(outcome), " where it found ", to_string(finding.rule())), where);
}

Json case_json(const CaseResult& result) {
  Json json = {{"name", result.name}};
  add_finding(result.finding, &json);
  if (result.skipped) json.update({{"outcome", kSkipped}, {"message", *result.skipped}});
  if (result.worst) json["worst"] = *result.worst;
  return json;
}

CaseResult case_from_json(const Json& json, const std::string& where) {
  if (!json.is_object()) throw usage_error("\"cases\" of a verdict must hold objects", where);
  CaseResult result;
  result.name = member<std::string>(json, "name", where);
  if (json.value("outcome", Json()) == kSkipped) {
    result.skipped = member<std::string>(json, "message", where);
  } else {
    result.finding = read_finding(json, where);
  }
  if (json.contains("worst")) result.worst = member<double>(json, "worst", where);
  return result;
}

}  // namespace

Json to_json(const Verdict& verdict) {
  Json cases = Json::array();
  for (const CaseResult& result : verdict.cases) cases.push_back(case_json(result));
  Json stages = Json::array();
  for (const StageResult& result : verdict.stages) {
    stages.push_back({{"stage", to_string(result.stage)}, {"seconds", result.seconds}});
    add_finding(result.finding, &stages.back());
  }
  return {{"id", verdict.candidate_id},
          {"task", verdict.task_id},
          {"level", verdict.level},
          {"outcome", to_string(verdict.outcome)},
          {"stopped_at", to_string(verdict.stopped_at)},
          {"correct", verdict.correct()},
          {"reason", verdict.reason()},
          {"stages", stages},
          {"cases", cases},
          {"path", to_string(verdict.path)},
          {"speedup", verdict.speedup ? Json(*verdict.speedup) : Json()},
          {"timing", timing_json(verdict.timing)},
          {"triton_share", verdict.triton_share ? Json(*verdict.triton_share) : Json()},
          {"policies", verdict.policies},
          {"delegated_ops", verdict.delegated_ops},
          {"triton_compile_s", verdict.triton_compile_s ? Json(*verdict.triton_compile_s) : Json()},
          {"triton_launches", verdict.triton_launches},
          {"sandbox_missing", verdict.sandbox_missing},
          {"code", verdict.code}};
}

Verdict verdict_from_json(const Json& json, const std::string& where) {
  if (!json.is_object()) throw usage_error("a verdict must be a JSON object", where);
  Verdict verdict;
  verdict.candidate_id = member<std::string>(json, "id", where);
  verdict.task_id = member<std::string>(json, "task", where);
  verdict.level = member<int>(json, "level", where);
  verdict.outcome = named<Outcome>(json, "outcome", outcome_from_string, where);
  verdict.stopped_at = named<Stage>(json, "stopped_at", stage_from_string, where);
  for (const Json& item : member<Json>(json, "stages", where)) {
    if (!item.is_object()) throw usage_error("\"stages\" of a verdict must hold objects", where);
    verdict.stages.push_back({named<Stage>(item, "stage", stage_from_string, where),
                              member<double>(item, "seconds", where), read_finding(item, where)});
  }
  if (json.contains("cases")) {
    for (const Json& item : member<Json>(json, "cases", where)) verdict.cases.push_back(case_from_json(item, where));
  }
  auto path = [](const std::string& name) { return find_name<VerifyPath>(kPathNames, name); };
  verdict.path = named<VerifyPath>(json, "path", path, where);
  if (auto it = json.find("speedup"); it != json.end() && !it->is_null()) {
    verdict.speedup = member<double>(json, "speedup", where);
  }
  if (auto it = json.find("timing"); it != json.end() && !it->is_null()) verdict.timing = timing_from_json(*it, where);
  if (auto it = json.find("triton_share"); it != json.end() && !it->is_null()) {
    verdict.triton_share = member<double>(json, "triton_share", where);
  }
  if (auto it = json.find("triton_compile_s"); it != json.end() && !it->is_null()) {
    verdict.triton_compile_s = member<double>(json, "triton_compile_s", where);
  }
  if (auto it = json.find("policies"); it != json.end()) {
    if (!it->is_object()) throw usage_error("\"policies\" of a verdict must be an object", where);
    for (const auto& [name, said] : it->items()) verdict.policies[name] = member<std::string>(*it, name.c_str(), where);
  }
  verdict.delegated_ops = strings(json, "delegated_ops", where);
  verdict.triton_launches = member<int64_t>(json, "triton_launches", where);
  verdict.sandbox_missing = strings(json, "sandbox_missing", where);
  verdict.code = member<std::string>(json, "code", where);
  if (verdict.finding().outcome() != verdict.outcome) {
    throw usage_error(cat("the stages of a verdict do not end as it says: ", to_string(verdict.outcome)), where);
  }
  return verdict;
}

}  // namespace tritonrl
