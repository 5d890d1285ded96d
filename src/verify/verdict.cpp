// SPDX-License-Identifier: Apache-2.0
// Verdicts, and how they go to and from JSON.
#include "verify/verdict.h"

#include "base/error.h"
#include "base/files/json_fields.h"
#include "base/text.h"

namespace tritonrl {

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

constexpr const char* kSkipped = "skipped";  // In place of a case's outcome.

// "outcome" and "message" are for readers; the finding has it all.
void add_finding(const Finding& finding, Json* json) {
  (*json)["outcome"] = to_string(finding.outcome());
  (*json)["message"] = human_text(finding);
  if (!finding.passed()) (*json)["finding"] = to_json(finding);
}

Finding read_finding(JsonReader& in, const Json& json, const std::string& where) {
  Outcome outcome = {};
  in("outcome", outcome);
  auto it = json.find("finding");
  if (it == json.end() && outcome != Outcome::kPass) throw usage_error("a verdict has no field \"finding\"", where);
  Finding finding = it == json.end() ? Finding() : finding_from_json(*it, where);
  if (finding.outcome() == outcome) return finding;
  throw usage_error(cat("a verdict says ", to_string(outcome), " where it found ", name_of(finding.rule())), where);
}

Json case_json(const CaseResult& result) {
  Json json = {{"name", result.name}};
  add_finding(result.finding, &json);
  if (result.skipped) json.update({{"outcome", kSkipped}, {"message", *result.skipped}});
  if (result.worst) json["worst"] = *result.worst;
  return json;
}

CaseResult case_from_json(const Json& json, const std::string& where) {
  CaseResult result;
  JsonReader in(json, "a case of a verdict", where);
  in("name", result.name);
  if (json.value("outcome", Json()) == kSkipped) {
    in("message", result.skipped.emplace());
  } else {
    result.finding = read_finding(in, json, where);
  }
  in.optional("worst", result.worst);
  return result;
}

StageResult stage_from_json(const Json& json, const std::string& where) {
  StageResult result;
  JsonReader in(json, "a stage of a verdict", where);
  in("stage", result.stage);
  in("seconds", result.seconds);
  result.finding = read_finding(in, json, where);
  in.optional("own_s", result.own_s);
  return result;
}

}  // namespace

template <class Self, class V>
void Verdict::json_fields(Self& self, V& v) {
  v("id", self.candidate_id);
  v("task", self.task_id);
  v("level", self.level);
  v("outcome", self.outcome);
  v("stopped_at", self.stopped_at);
  v("path", self.path);
  v.optional("tolerance", self.tolerance);
  v("speedup", self.speedup);
  v("timing", self.timing);
  v("triton_share", self.triton_share);
  v.optional("policies", self.policies);
  v("delegated_ops", self.delegated_ops);
  v("triton_compile_s", self.triton_compile_s);
  v("triton_launches", self.triton_launches);
  v.optional("keeps_state", self.keeps_state);
  v.optional("choices_not_run", self.choices_not_run);
  v("sandbox_missing", self.sandbox_missing);
  v("code", self.code);
  v.note("correct", [&] { return self.correct(); });
  v.note("reason", [&] { return self.reason(); });
}

Json to_json(const Verdict& verdict) {
  Json json = json_of(verdict);
  json["cases"] = Json::array();
  for (const CaseResult& result : verdict.cases) json["cases"].push_back(case_json(result));
  json["stages"] = Json::array();
  for (const StageResult& result : verdict.stages) {
    json["stages"].push_back({{"stage", to_string(result.stage)}, {"seconds", result.seconds}});
    if (result.own_s) json["stages"].back()["own_s"] = *result.own_s;
    add_finding(result.finding, &json["stages"].back());
  }
  return json;
}

Verdict verdict_from_json(const Json& json, const std::string& where) {
  auto verdict = from_json<Verdict>(json, "a verdict", where);
  std::vector<Json> stages, cases;
  JsonReader in(json, "a verdict", where);
  in("stages", stages);
  in.optional("cases", cases);
  for (const Json& item : stages) verdict.stages.push_back(stage_from_json(item, where));
  for (const Json& item : cases) verdict.cases.push_back(case_from_json(item, where));
  if (verdict.finding().outcome() != verdict.outcome) {
    throw usage_error(cat("the stages of a verdict do not end as it says: ", to_string(verdict.outcome)), where);
  }
  return verdict;
}

}  // namespace tritonrl
