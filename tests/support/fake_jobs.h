// SPDX-License-Identifier: Apache-2.0
// FakeJobs: what workers and judge answer about one task, y = 2 x for four numbers, and an honest candidate for it; for
// tests that verify with a FakePool and a fake judge.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "support/fake_judge.h"
#include "support/fake_worker.h"
#include "support/made_up_finding.h"
#include "support/trace_writer.h"
#include "verify/verifier.h"

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
  Rule rule = made_up_finding(named<Outcome>(outcome).value()).rule();
  return {{"rule", name_of(rule)}, {"phase", "forward"}, {"message", message}};
}
inline JobAnswer failure(const std::string& nonce, const char* outcome, const char* message = "no luck") {
  return exited({{"nonce", nonce}, {"ok", false}, {"failure", failure_json(outcome, message)}}, "");
}

inline JobAnswer interpret_answer(const std::string& nonce, const float (&output)[4]) {
  return exited({{"nonce", nonce},
                 {"ok", true},
                 {"outputs", ref("float32", 0, 16)},
                 {"inputs_after", Json::array({nullptr})},
                 {"kept", Json::array()},
                 {"programs", 1},
                 {"guards_broken", Json::array()}},
                bytes_of(output));
}

// y = x + x, for so many numbers.
inline CaseTrace reference_trace(const std::string& name, int64_t numbers = 4) {
  CaseTrace trace = small_trace(name, {numbers});
  trace.tape = {call_step("aten.add.Tensor", {0, 0}, 1)};
  return trace;
}
// The reference's trace, without the cases that it fails in.
inline JobAnswer reference_answer(const std::string& nonce, const Job& job, const std::set<std::string>& failing = {},
                                  int64_t larger = 4) {
  TraceFile file;
  Json failures = Json::array();
  for (const Json& spec : job.args["cases"]) {
    auto name = spec["name"].get<std::string>();
    if (failing.count(name)) {
      failures.push_back({{"case", name}, {"failure", failure_json("runtime_error")}});
    } else {
      file.cases.push_back(reference_trace(name, name == "larger" ? larger : 4));
    }
  }
  Json header = {{"nonce", nonce}, {"ok", true}};
  if (!failures.empty()) header["failures"] = failures;
  return exited(header, write_trace_file(file));
}

// A trace of every case the job names, and what a worker says with one.
inline TraceFile trace(const Json& args) {
  TraceFile file = file_of({});
  for (const Json& spec : args["cases"]) {
    file.cases.push_back(small_trace(spec["name"], spec["inputs"][0]["shape"].get<std::vector<int64_t>>()));
  }
  return with_specs(std::move(file));
}
inline JobAnswer record_answer(const std::string& nonce, const TraceFile& file) {
  return exited({{"nonce", nonce}, {"ok", true}}, write_trace_file(file));
}

inline JobAnswer compile_answer(const std::string& nonce) { return record_answer(nonce, file_of({})); }

// The same without one case, which is listed as failed.
inline JobAnswer record_answer(const std::string& nonce, const Job& job, const std::string& failing) {
  TraceFile file = trace(job.args);
  auto fails = [&](const CaseTrace& trace) { return trace.name == failing; };
  file.cases.erase(std::remove_if(file.cases.begin(), file.cases.end(), fails), file.cases.end());
  Json failures = Json::array({{{"case", failing}, {"failure", failure_json("runtime_error")}}});
  return exited({{"nonce", nonce}, {"ok", true}, {"failures", failures}}, write_trace_file(file));
}

// Of a correct candidate: without its launches the output is garbage.
inline JobAnswer honest_answer(const Job& job, const std::string& nonce) {
  const float garbage[4] = {NAN, NAN, NAN, NAN};
  if (kind_of(job) == "reference") return reference_answer(nonce, job);
  if (job.kind == "compile") return compile_answer(nonce);
  if (job.kind == "record") return record_answer(nonce, trace(job.args));
  return job.args["launches"].get<bool>() ? interpret_answer(nonce, kExpected) : interpret_answer(nonce, garbage);
}

inline Json judged(const Finding& finding) { return {{"finding", to_json(finding)}}; }

// Of a judge that knows kExpected: whatever the seed, the input is kInput.
inline Json honest_judge(const Json& question, const std::string& payload, std::string* tensors) {
  auto is = [&](const char* what) { return question["do"] == what; };
  Json pass = judged({});
  if (is("inputs")) {
    *tensors = bytes_of(kInput);
    pass.update({{"parameters", Json::array()}, {"matched", Json::array()}, {"inputs", {ref("float32", 0, 16)}}});
  } else if (is("lint")) {
    pass.update({{"flags", Json::array()}, {"drops_tried", 0}, {"drops_impossible", 0}});
  } else if (is("compare")) {
    float got[4];
    std::copy_n(tensor_from(question["outputs"], payload).bytes.data(), sizeof got, reinterpret_cast<char*>(got));
    if (!std::all_of(got, got + 4, [](float x) { return std::isfinite(x); })) return judged(Rule::kNotFinite);
    if (!std::equal(got, got + 4, kExpected)) return judged(Rule::kElements);
    if (!question["changed"].empty()) return judged(input_changed(question["changed"][0].get<int64_t>()));
    if (question["damage"] > 0) return judged(Rule::kWritesOutside);
    pass["worst"] = 0.5;
  }
  return pass;
}
// Of one whose reference fails when it is run.
inline Json reference_failed(const char* why) {
  Json out = judged({Rule::kVerifierFailed, why});
  out.update({{"reference_failed", "runtime_error"}, {"why", why}});
  return out;
}

inline std::unique_ptr<Verifier> verifier_over(FakePool::Answer worker, const VerifyConfig& config = {},
                                               const VerifySeams& seams = {}, JudgeReply judge = honest_judge) {
  return Verifier::over(std::make_unique<FakePool>(std::move(worker)), fake_judge(std::move(judge)), config, seams);
}

}  // namespace tritonrl
