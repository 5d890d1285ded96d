// SPDX-License-Identifier: Apache-2.0
// FakeJobs: what the workers answer about one task, y = 2 x for four numbers, and an honest candidate for it; for tests
// that verify with a FakePool.
#pragma once

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>

#include "verify/fake_worker.h"
#include "verify/made_up_finding.h"
#include "verify/plan_writer.h"

namespace tritonrl {

inline const float kInput[4] = {1, -2, 3, 4}, kExpected[4] = {2, -4, 6, 8};

inline std::string bytes_of(const float (&values)[4]) { return {reinterpret_cast<const char*>(values), sizeof values}; }
inline Json ref(const char* dtype, int64_t offset, int64_t nbytes) {
  return {{"shape", {4}}, {"dtype", dtype}, {"offset", offset}, {"nbytes", nbytes}};
}
inline JobAnswer exited(const Json& header, const std::string& area) {
  JobAnswer answer;
  answer.status = JobAnswer::Status::kExited;
  answer.result = blob_bytes(header, area);
  return answer;
}

// A child's failure of that outcome.
inline Json failure_json(const std::string& outcome, const char* message = "no luck") {
  Rule rule = made_up_finding(outcome_from_string(outcome).value()).rule();
  return {{"rule", to_string(rule)}, {"phase", "forward"}, {"message", message}};
}
inline JobAnswer failure(const std::string& nonce, const char* outcome, const char* message = "no luck") {
  return exited({{"nonce", nonce}, {"ok", false}, {"failure", failure_json(outcome, message)}}, "");
}

inline JobAnswer oracle_answer(const std::string& nonce) {
  double truth[4];
  std::copy(std::begin(kExpected), std::end(kExpected), truth);
  return exited(
      {{"nonce", nonce},
       {"ok", true},
       {"parameters", Json::array()},
       {"inputs", Json::array({{{"kind", "tensor"}, {"tensor", ref("float32", 0, 16)}}})},
       {"outputs", ref("float32", 16, 16)},
       {"outputs64", ref("float64", 32, 32)},
       {"init_inputs", Json::array()},
       {"constants", Json::object()},
       {"inputs_mutated", Json::array()}},
      bytes_of(kInput) + bytes_of(kExpected) + std::string(reinterpret_cast<const char*>(truth), sizeof truth));
}

inline JobAnswer interpret_answer(const std::string& nonce, const float (&output)[4]) {
  return exited({{"nonce", nonce},
                 {"ok", true},
                 {"outputs", ref("float32", 0, 16)},
                 {"inputs_after", Json::array({nullptr})},
                 {"programs", 1},
                 {"guards_broken", Json::array()}},
                bytes_of(output));
}

// A recording of every case the job names, and what a worker says with one.
inline PlanFile recording(const Json& args) {
  PlanFile file = file_of({});
  for (const Json& spec : args["cases"]) file.cases.push_back(small_plan(spec["name"], {4}));
  return with_specs(std::move(file));
}
inline JobAnswer record_answer(const std::string& nonce, const PlanFile& file) {
  return exited({{"nonce", nonce}, {"ok", true}}, write_plan_file(file));
}

inline JobAnswer compile_answer(const std::string& nonce) { return record_answer(nonce, file_of({})); }

// The same without one case, which is listed as failed.
inline JobAnswer record_answer(const std::string& nonce, const Job& job, const std::string& failing) {
  PlanFile file = recording(job.args);
  auto fails = [&](const Plan& plan) { return plan.name == failing; };
  file.cases.erase(std::remove_if(file.cases.begin(), file.cases.end(), fails), file.cases.end());
  Json failures = Json::array({{{"case", failing}, {"failure", failure_json("runtime_error")}}});
  return exited({{"nonce", nonce}, {"ok", true}, {"failures", failures}}, write_plan_file(file));
}

// Of a correct candidate: without its launches the output is garbage.
inline JobAnswer honest_answer(const Job& job, const std::string& nonce) {
  const float garbage[4] = {NAN, NAN, NAN, NAN};
  if (job.kind == "oracle") return oracle_answer(nonce);
  if (job.kind == "compile") return compile_answer(nonce);
  if (job.kind == "record") return record_answer(nonce, recording(job.args));
  return job.args["launches"].get<bool>() ? interpret_answer(nonce, kExpected) : interpret_answer(nonce, garbage);
}

}  // namespace tritonrl
