// SPDX-License-Identifier: Apache-2.0
// SlotTest: verifier, judge and replayer as three processes, on the CPU, with one task; for tests.
#pragma once

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/process/build_paths.h"
#include "base/text.h"
#include "verify/execute/execution.h"
#include "verify/execute/replay_executor.h"
#include "verify/replay/tape.h"
#include "verify/sandbox/sandbox.h"
#include "verify/verifier.h"

namespace tritonrl {

inline constexpr const char* kTask = R"(import torch
import torch.nn as nn

N = 300

class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.linear = nn.Linear(n, 7)
        self.norm = nn.LayerNorm(7)

    def forward(self, x, scale):
        return {"y": torch.relu(self.norm(self.linear(x))) * scale, "top": (x * scale).argmax(1)}

def get_inputs():
    return [torch.randn(64, N), 2.5]

def get_init_inputs():
    return [N]
)";

inline constexpr const char* kCandidate = R"(import torch
import torch.nn as nn

class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        %INIT%

    def forward(self, x, scale):
        %FORWARD%
)";
inline constexpr const char* kSameInit = "self.linear = nn.Linear(n, 7); self.norm = nn.LayerNorm(7)";
inline constexpr const char* kSameForward =
    "return {'y': torch.relu(self.norm(self.linear(x))) * scale, 'top': (x * scale).argmax(1)}";

class SlotTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    SandboxFiles files = find_sandbox_files();
    std::filesystem::path worker = source_dir() + "/worker";
    pool_ = ForkServerPool::open([=](ForkServerKind kind) {
              return spawn_fork_server(
                  jail_command(files, true, python_program(), {worker},
                               {"-I", "-B", (worker / "broker.py").string(), "--mode", to_string(kind),
                                "--sandbox-library", std::filesystem::canonical(files.library).string()}));
            }).release();
    slots_ = JudgeSlots::open({{"cpu"}}).release();
    references_ = new ReferenceCache(*pool_, 60, int64_t{1} << 30);
    tools_ = replaying(*slots_, *references_);
  }
  static void TearDownTestSuite() {
    delete references_;
    delete slots_;
    delete pool_;
  }

  static ExecutionTools replaying(JudgeSlots& slots, ReferenceCache& references) {
    return {Tolerance::kTf32, &slots, &references,
            &timing_,         true,   [&slots] { return std::make_unique<ReplayExecutor>(slots); }};
  }

  static Finding record(Json args, Blob* out) {
    Job job{"record", std::move(args), ""};
    job.deadline_s = 30;
    JobAnswer answer = pool_->run(ForkServerKind::kRecord, std::move(job));
    auto blob = parse_blob(std::move(answer.result), answer.nonce);
    if (!blob) return {Rule::kVerifierFailed, cat(blob.why, " ", answer.stderr_tail)};
    if (blob.value->failure) return *blob.value->failure;
    *out = std::move(*blob.value);
    return {};
  }

  // Through compile, tiny_run (but not without its launches), full_run.
  static Finding verify(const std::string& init, const std::string& forward) {
    Task task;
    task.id = "t";
    task.source = kTask;
    Execution path(tools_, task, {{"full", {}, false, 2}}, {1234, 4321}, Rng(5), Rng(6));
    Finding ended = path.record(replace_all(replace_all(kCandidate, "%INIT%", init), "%FORWARD%", forward), record);
    return ended.passed() ? path.full_run(30, false) : ended;
  }
  static std::string verdict(const std::string& init, const std::string& forward) {
    Finding ended = verify(init, forward);
    return cat(to_string(ended.outcome()), ": ", human_text(ended));
  }

  // The results of the task's additional cases.
  static std::map<std::string, CaseResult> cases(const std::string& forward, const std::string& task_source = kTask) {
    std::vector<CaseSpec> specs = {{"full", {}, false, 2}};
    for (const char* values : kValueTransforms) {
      specs.push_back({values, {}, false, 1, values, false, false, "full", true});
    }
    specs.push_back({"larger", {{"N", 450}}, false, 1, "", false, false, "", true});
    specs.push_back({"precision", {}, false, 1, "", true, false, "", true});
    specs.push_back({"nothing", {}, false, 1, "", false, false, "", true, "there is no such thing"});
    Task task;
    task.id = "t";
    task.source = task_source;
    Execution path(tools_, task, specs, {1234, 4321}, Rng(5), Rng(6));
    std::string code = replace_all(replace_all(kCandidate, "%INIT%", kSameInit), "%FORWARD%", forward);
    Finding ended = path.record(code, record);
    EXPECT_EQ(ended.outcome(), Outcome::kPass) << human_text(ended);
    path.full_run(30, false);
    std::map<std::string, CaseResult> out;
    for (const CaseResult& result : path.results()) out[result.name] = result;
    return out;
  }

  inline static ForkServerPool* pool_ = nullptr;
  inline static JudgeSlots* slots_ = nullptr;
  inline static ReferenceCache* references_ = nullptr;
  inline static PlainMean timing_;
  inline static ExecutionTools tools_;
};

}  // namespace tritonrl
