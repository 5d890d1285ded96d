// SPDX-License-Identifier: Apache-2.0
// A trial: one candidate through a verifier whose workers and judge are scripted; for tests.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "support/fake_jobs.h"
#include "verify/verifier.h"

namespace tritonrl::trial {

using Status = JobAnswer::Status;

inline JobAnswer raw(const std::string& result) {
  JobAnswer answer;
  answer.status = Status::kExited;
  answer.result = result;
  return answer;
}

inline bool has_launches(const Job& job) { return job.args["launches"].get<bool>(); }

inline Candidate candidate(const std::string& id = "c", const std::string& text = "x = 1\n") {
  Candidate one;
  one.id = id;
  one.task.id = "double";
  one.task.source = "# task";
  one.task.tiny = {{"N", 2}};
  one.text = text;
  one.is_code = true;
  return one;
}

struct Trial {
  Verdict verdict;
  std::set<int64_t> inputs;  // Seeds of those that the judge was asked for.
  std::set<int64_t> noise;   // Seeds of what moves weights, as the judge was told.
  int64_t reference = 0, record = 0, interpret = 0;
};

inline Trial run(const FakePool::Answer& answer, const Candidate& one = candidate(), VerifyConfig config = {},
                 const JudgeReply& judge = honest_judge) {
  Trial trial;
  auto pool = std::make_unique<FakePool>(answer);
  FakePool* jobs = pool.get();
  auto judges = fake_judge([&](const Json& question, const std::string& payload, std::string* tensors) {
    if (question["do"] == "inputs") {
      trial.inputs.insert(question["input_seed"].get<int64_t>());
      trial.noise.insert(question["noise_seed"].get<int64_t>());
    }
    return judge(question, payload, tensors);
  });
  auto verifier = Verifier::over(std::move(pool), std::move(judges), config);
  trial.verdict = verifier->verify({&one, 1})[0];
  trial.reference = jobs->count("reference");
  trial.record = jobs->count("record");
  trial.interpret = jobs->count("interpret");
  return trial;
}

// Honest, but jobs of `kind` are answered by `lie`.
inline FakePool::Answer lying(const std::string& kind, FakePool::Answer lie) {
  return [=](const Job& job, const std::string& nonce) {
    return kind_of(job) == kind ? lie(job, nonce) : honest_answer(job, nonce);
  };
}

}  // namespace tritonrl::trial
