// SPDX-License-Identifier: Apache-2.0
// Multi-input testing with the real workers, without a GPU.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/text.h"
#include "ext/multi_input/multi_input.h"
#include "verify/verifier.h"

namespace tritonrl::multi_input::live_test {
namespace {

const std::vector<std::string> kFive = {"original", "doubled", "reseeded", "larger", "precision"};

std::map<std::string, std::string> outcomes(const Verdict& verdict) {
  std::map<std::string, std::string> out;
  for (const CaseResult& result : verdict.cases)
    out[result.name] = result.outcome() ? to_string(*result.outcome()) : "-";
  return out;
}

using Outcomes = std::map<std::string, std::string>;

constexpr const char* kScaleTask = R"(import torch
import torch.nn as nn

SIZE = 1024

class Model(nn.Module):
    def forward(self, x):
        return x * 3.0

def get_inputs():
    return [torch.randn(SIZE)]

def get_init_inputs():
    return []
)";

constexpr const char* kScaleCandidate = R"(import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def scale(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) * 3.0, mask=at < n)

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        n = x.numel()
        scale[(%GRID%,)](x, y, n, BLOCK=64)
        return y
)";

TEST(MultiInputLive, NoGridOfTheCandidatesOwnChoosingSavesItFromACase) {
  VerifyConfig config;
  config.gpus = 0;
  config.max_programs = 16;  // What the honest one launches in the original; it launches 24 in the larger case.
  VerifySeams seams;
  seams.cases = std::make_shared<MultiInput>(2, MultiInput::Config{{"original", "larger"}, 0});
  auto verifier = Verifier::open(config, seams);
  std::vector<Candidate> candidates(2);
  const char* grids[] = {"triton.cdiv(n, 64)", "16 if n == 1024 else 100000"};
  for (size_t i = 0; i < 2; ++i) {
    candidates[i].id = grids[i];
    candidates[i].task.id = "scale";
    candidates[i].task.source = kScaleTask;
    candidates[i].text = replace_all(kScaleCandidate, "%GRID%", grids[i]);
    candidates[i].is_code = true;
  }
  auto verdicts = verifier->verify(candidates);
  EXPECT_TRUE(verdicts[0].correct()) << verdicts[0].reason();
  EXPECT_EQ(outcomes(verdicts[0]), (Outcomes{{"full", "pass"}, {"larger", "pass"}}));
  EXPECT_EQ(verdicts[1].outcome, Outcome::kUnsupported) << verdicts[1].reason();
  EXPECT_EQ(outcomes(verdicts[1]), (Outcomes{{"full", "pass"}, {"larger", "unsupported"}}));
}

// Tolerances of the precision case: half precision's where the candidate multiplies matrices and so does the task,
// float32's own elsewhere. Each of these rounds its operands to half precision, which only products may.
constexpr const char* kHalfTask = R"(import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return %FORWARD%

def get_inputs():
    return [torch.randn(32, 32, dtype=torch.float16)]

def get_init_inputs():
    return []
)";

constexpr const char* kHalfCandidate = R"(import torch
import torch.nn as nn
import triton
import triton.language as tl

product = tl.dot

@triton.jit
def kernel(x_ptr, y_ptr, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + i * N + j).to(tl.float32)
    h = (x * 1.1).to(tl.float16)
    %WORK%
    tl.store(y_ptr + i * N + j, y)

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(1,)](x, y, N=32)
        return y
)";

TEST(MultiInputLive, NoTextWidensAToleranceAndOnlyProductsDo) {
  struct Half {
    const char *what, *forward, *work, *outcome;
  };
  const Half list[] = {
      {"a comment", "x * 1.1", "y = h  # tl.dot(x, x)", "wrong_output"},
      {"a product in a task without one", "x * 1.1", "y = h.to(tl.float32) + tl.dot(x, x) * tl.load(x_ptr) * 0.0",
       "wrong_output"},
      {"a comment in a task with a product", "(x * 1.1) @ x",
       "y = tl.sum(h[:, :, None].to(tl.float32) * x[None, :, :], axis=1)  # tl.dot(h, x)", "wrong_output"},
      {"a product by another name", "(x * 1.1) @ x", "y = product(h, x.to(tl.float16))", "pass"},
      {"an exact product of rounded operands", "(x * 1.1) @ x",
       "y = tl.dot(h.to(tl.float32), x, input_precision='ieee')", "wrong_output"},
      {"an exact product", "(x * 1.1) @ x", "y = tl.dot(x * 1.1, x, input_precision='ieee')", "pass"},
  };
  VerifyConfig config;
  config.gpus = 0;
  VerifySeams seams;
  seams.cases = std::make_shared<MultiInput>(2, MultiInput::Config{{"original", "precision"}, 0});
  auto verifier = Verifier::open(config, seams);
  std::vector<Candidate> candidates;
  for (const Half& one : list) {
    candidates.emplace_back();
    candidates.back().id = one.what;
    candidates.back().task.id = one.forward;
    candidates.back().task.source = replace_all(kHalfTask, "%FORWARD%", one.forward);
    candidates.back().text = replace_all(kHalfCandidate, "%WORK%", one.work);
    candidates.back().is_code = true;
  }
  auto verdicts = verifier->verify(candidates);
  for (size_t i = 0; i < candidates.size(); ++i) {
    EXPECT_EQ(outcomes(verdicts[i]), (Outcomes{{"full", "pass"}, {"precision", list[i].outcome}}))
        << list[i].what << ": " << verdicts[i].reason();
  }
}

TEST(MultiInputLive, ProductsOfFloat32MayBeInTf32AndNothingElseMay) {
  struct One {
    const char *what, *forward, *work, *outcome;
    Tolerance tolerance;
  };
  const char* kCut = "(x.to(tl.int32, bitcast=True) & -8192).to(tl.float32, bitcast=True)";
  const std::string cut = cat("y = ", kCut), decoy = cat(cut, " + tl.dot(x, x) * 0.0");
  const One list[] = {
      {"tl.dot as it is", "x @ x", "y = product(x, x)", "pass", Tolerance::kTf32},
      {"tl.dot, exact", "x @ x", "y = product(x, x, input_precision='ieee')", "pass", Tolerance::kFp32},
      {"an exact one of operands that were cut", "x @ x", "y = product(x.to(tl.float16), x.to(tl.float16))",
       "wrong_output", Tolerance::kFp32},
      {"a comment", "x @ x", "y = tl.sum(h[:, :, None].to(tl.float32) * x[None, :, :], axis=1)  # tl.dot(x, x)",
       "wrong_output", Tolerance::kFp32},
      {"a product in a task without one", "x * 1.0", decoy.c_str(), "wrong_output", Tolerance::kFp32},
      {"a product beside what is none", "x + 0.0 * (x @ x)", decoy.c_str(), "wrong_output", Tolerance::kTf32},
  };
  VerifyConfig config;
  config.gpus = 0;
  auto verifier = Verifier::open(config, {});
  std::vector<Candidate> candidates;
  for (const One& one : list) {
    candidates.emplace_back();
    candidates.back().id = one.what;
    candidates.back().task.id = one.forward;
    std::string task = replace_all(kHalfTask, "dtype=torch.float16", "dtype=torch.float32");
    candidates.back().task.source = replace_all(task, "%FORWARD%", one.forward);
    candidates.back().text = replace_all(kHalfCandidate, "%WORK%", one.work);
    candidates.back().is_code = true;
  }
  auto verdicts = verifier->verify(candidates);
  for (size_t i = 0; i < candidates.size(); ++i) {
    EXPECT_EQ(to_string(verdicts[i].outcome), std::string(list[i].outcome))
        << list[i].what << ": " << verdicts[i].reason();
    EXPECT_EQ(verdicts[i].tolerance, list[i].tolerance) << list[i].what;
  }
}

}  // namespace
}  // namespace tritonrl::multi_input::live_test
