// SPDX-License-Identifier: Apache-2.0
// All stages with the real fork servers: right, wrong and hostile candidates for one small task.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "base/process/build_paths.h"
#include "support/trace_writer.h"
#include "verify/sandbox/sandbox.h"
#include "verify/verifier.h"

namespace tritonrl::live_test {
namespace {

constexpr const char* kTask = R"(import torch
import torch.nn as nn

M = 64
N = 300

class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.norm = nn.LayerNorm(n)

    def forward(self, x):
        return torch.relu(self.norm(x)) * 2.0

def get_inputs():
    return [torch.randn(M, N)]

def get_init_inputs():
    return [N]
)";

// Tests replace %STORE% and %HOST%.
constexpr const char* kCandidate = R"(import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, w_ptr, b_ptr, y_ptr, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(x_ptr + row * n + cols, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / n
    d = tl.where(mask, x - mean, 0.0)
    var = tl.sum(d * d, axis=0) / n
    w = tl.load(w_ptr + cols, mask=mask)
    b = tl.load(b_ptr + cols, mask=mask)
    y = d / tl.sqrt(var + eps) * w + b
    y = tl.maximum(y, 0.0) * 2.0
    %STORE%

class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.norm = nn.LayerNorm(n)

    def forward(self, x):
        y = torch.empty_like(x)
        rows, n = x.shape
        kernel[(rows,)](x, self.norm.weight, self.norm.bias, y, n, self.norm.eps, BLOCK=triton.next_power_of_2(n))
        %HOST%
)";

std::string candidate(const std::string& store = "tl.store(y_ptr + row * n + cols, y, mask=mask)",
                      const std::string& host = "return y") {
  return replace_all(replace_all(kCandidate, "%STORE%", store), "%HOST%", host);
}

class Live : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    try {
      VerifyConfig config;
      config.memory_mb = 1024;
      verifier_ = Verifier::open(config).release();
    } catch (const Error& error) {
      FAIL() << error.what();
    }
  }
  static void TearDownTestSuite() {
    delete verifier_;
    verifier_ = nullptr;
  }

  static Candidate of(const std::string& code) {
    Candidate candidate;
    candidate.id = "c";
    candidate.task.id = "norm";
    candidate.task.source = kTask;
    candidate.task.tiny = {{"M", 3}, {"N", 5}};
    candidate.text = code;
    candidate.is_code = true;
    return candidate;
  }

  static Verdict verdict_of(const std::string& code) {
    EXPECT_NE(verifier_, nullptr);
    Candidate one = of(code);
    Verdict verdict = verifier_->verify({&one, 1})[0];
    return verdict;
  }
  static Verifier* verifier_;
};
Verifier* Live::verifier_ = nullptr;

TEST_F(Live, RightCandidatePasses) {
  Verdict verdict = verdict_of(candidate());
  EXPECT_EQ(verdict.outcome, Outcome::kPass) << verdict.reason();
  EXPECT_EQ(verdict.stopped_at, Stage::kFullRun);
  EXPECT_EQ(verdict.path, VerifyPath::kInterpreter);
  EXPECT_EQ(verdict.triton_launches, 1);
  EXPECT_GT(verdict.triton_compile_s.value_or(0), 0);
  EXPECT_LT(verdict.triton_compile_s.value_or(0), verdict.stages[2].seconds);
  EXPECT_TRUE(verdict.delegated_ops.empty());
  EXPECT_TRUE(verdict.sandbox_missing.empty());
  EXPECT_FALSE(verdict.speedup.has_value());
}

TEST_F(Live, WrongCandidatesFail) {
  // The affine part at its identity would hide in a naive check.
  std::string dropped = replace_all(candidate(), "* w + b", "");
  EXPECT_EQ(verdict_of(dropped).outcome, Outcome::kWrongOutput);
  EXPECT_EQ(verdict_of(candidate("tl.store(y_ptr + row * n + cols, y, mask=cols < n - 1)")).outcome,
            Outcome::kNotFinite);
  EXPECT_EQ(verdict_of(candidate("tl.store(y_ptr + row * n + cols, y.to(tl.float16), mask=mask)")).outcome,
            Outcome::kWrongOutput);
  EXPECT_EQ(verdict_of(candidate("pass")).outcome, Outcome::kNotFinite);
}

TEST_F(Live, RuleBreakers) {
  Verdict delegating = verdict_of(candidate("tl.store(y_ptr + row * n + cols, y, mask=mask)", "return torch.relu(y)"));
  EXPECT_EQ(delegating.outcome, Outcome::kRuleBreak);
  EXPECT_EQ(delegating.stopped_at, Stage::kCompile);
  EXPECT_EQ(delegating.delegated_ops, std::vector<std::string>{"aten.relu.default"});
  Verdict thrown_away =
      verdict_of(candidate("tl.store(y_ptr + row * n + cols, y, mask=mask)", "return torch.ones_like(x)"));
  EXPECT_EQ(thrown_away.outcome, Outcome::kRuleBreak);
}

TEST_F(Live, BrokenCandidates) {
  EXPECT_EQ(verdict_of("x = (\n").outcome, Outcome::kSyntaxError);
  EXPECT_EQ(verdict_of("x = 1\n").outcome, Outcome::kCompileError);
  EXPECT_EQ(verdict_of("import no_such_module\n").outcome, Outcome::kCompileError);
  Verdict raised = verdict_of(candidate("pass", "raise ValueError('no luck in /usr/lib/python3.11/x.py')"));
  EXPECT_EQ(raised.outcome, Outcome::kRuntimeError);
  EXPECT_NE(raised.reason().find("no luck"), std::string::npos);
  EXPECT_EQ(raised.reason().find("/usr/"), std::string::npos) << raised.reason();
  EXPECT_EQ(verdict_of(candidate("tl.no_such_function(y)")).outcome, Outcome::kCompileError);
  EXPECT_EQ(verdict_of(candidate("pass", "return y if x.sum() > 0 else x")).outcome, Outcome::kUnsupported);
}

TEST_F(Live, HostileCandidates) {
  EXPECT_EQ(verdict_of("import os\nos._exit(0)\n").outcome, Outcome::kRuntimeError);
  EXPECT_EQ(verdict_of("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\nos.abort()\n").outcome,
            Outcome::kRuntimeError);
  EXPECT_EQ(verdict_of("import os\ntry:\n  while True: os.fork()\nexcept OSError: raise RuntimeError('bounded')\n")
                .passed(Stage::kCompile),
            false);
  EXPECT_EQ(verdict_of("x = []\nwhile True: x.append(bytearray(1 << 26))\n").outcome, Outcome::kOutOfMemory);
  EXPECT_EQ(verdict_of("f = open('/tmp/x', 'wb')\nwhile True: f.write(b'0' * (1 << 24))\n").outcome,
            Outcome::kOutOfMemory);
  EXPECT_EQ(verdict_of("import socket\nsocket.socket()\n").outcome, Outcome::kCompileError);
  EXPECT_EQ(verdict_of("while True: print('x' * 1000, flush=True)\n").passed(Stage::kCompile), false);
  // The fork servers are still there.
  EXPECT_EQ(verdict_of(candidate()).outcome, Outcome::kPass);
}

TEST_F(Live, OurSetUpCodeIsNoWayOut) {
  // Exit codes that our own code uses must not buy a verdict that is never scored.
  for (int code : {1, 113, 125}) {
    Verdict verdict = verdict_of(cat("import os\nos._exit(", code, ")\n"));
    EXPECT_EQ(verdict.outcome, Outcome::kRuntimeError) << code;
  }
}

// Processes that want all processors for as long as it lives.
class Load {
 public:
  explicit Load(int processes) {
    for (int i = 0; i < processes; ++i) {
      pid_t process = fork();
      if (process == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (std::atomic<uint64_t> n = 0;; ++n) {
        }
      }
      processes_.push_back(process);
    }
  }
  ~Load() {
    for (pid_t process : processes_) {
      kill(process, SIGKILL);
      waitpid(process, nullptr, 0);
    }
  }

 private:
  std::vector<pid_t> processes_;
};

// Deadlines are as short as an honest candidate just needs on a machine of its own; here it has a fifth of one.
TEST_F(Live, LoadFailsNobody) {
  Verdict alone = verdict_of(candidate());
  VerifyConfig config;
  config.memory_mb = 1024;
  double most_s = 0, wall_s = 0;
  for (const StageResult& stage : alone.stages) most_s = std::max(most_s, stage.own_s.value_or(0));
  config.record_deadline_s = config.compile_deadline_s = config.tiny_deadline_s = config.full_deadline_s =
      3 * most_s + 0.3;
  auto verifier = Verifier::open(config);
  Load load(static_cast<int>(4 * std::thread::hardware_concurrency()));
  Candidate one = of(replace_all(candidate(), "class ModelNew", "OTHER = 1\n\n\nclass ModelNew"));
  double start = now_s();
  Verdict verdict = verifier->verify({&one, 1})[0];
  wall_s = now_s() - start;
  EXPECT_TRUE(verdict.correct()) << verdict.reason();
  double own_s = 0;
  for (const StageResult& stage : verdict.stages) own_s += stage.own_s.value_or(0);
  EXPECT_LT(own_s, wall_s);
  one.text = "while True: pass\n";
  verdict = verifier->verify({&one, 1})[0];
  EXPECT_EQ(verdict.outcome, Outcome::kTimeout) << verdict.reason();
}

TEST_F(Live, BrokenTaskIsAHarnessFaultThatNamesIt) {
  Candidate one = of(candidate());
  one.task.source = replace_all(one.task.source, "torch.relu(self.norm(x))", "undefined_name");
  Verdict verdict = verifier_->verify({&one, 1})[0];
  EXPECT_EQ(verdict.outcome, Outcome::kHarnessFault);
  EXPECT_NE(verdict.reason().find("task norm"), std::string::npos) << verdict.reason();
}

TEST_F(Live, Lint) {
  Candidate one = of("");
  EXPECT_EQ(verifier_->lint(one.task), "");
  one.task.source = replace_all(kTask, "torch.randn(M, N)", "torch.linspace(-1, 1, M * N).reshape(M, N)");
  EXPECT_NE(verifier_->lint(one.task).find("the same tensors for two seeds"), std::string::npos)
      << verifier_->lint(one.task);
  one.task.source = replace_all(kTask, "* 2.0", "* 0.0");
  EXPECT_NE(verifier_->lint(one.task).find("zeros"), std::string::npos) << verifier_->lint(one.task);
}

// What the recorder itself wrote, and no test's writer.
TEST(LiveTrace, IsParsedAndSaysWhatTheCandidateDoes) {
  SandboxFiles files = find_sandbox_files();
  std::filesystem::path worker = std::filesystem::canonical(std::filesystem::path(source_dir()) / "worker");
  auto server = ForkServer::attach(
      spawn_fork_server(jail_command(files, false, python_program(), {worker},
                                     {"-I", "-B", worker / "broker.py", "--mode", "record", "--sandbox-library",
                                      std::filesystem::canonical(files.library)})),
      120);
  Job job{"record",
          {{"task_source", kTask},
           {"candidate_source", candidate()},
           {"init_inputs", {300}},
           {"cases",
            {{{"name", "full"},
              {"constants", Json::object()},
              {"compile", true},
              {"inputs", {{{"shape", {64, 300}}, {"dtype", "float32"}, {"stride", {300, 1}}}}}}}},
           {"arch", 90}},
          ""};
  JobAnswer answer = server->submit(std::move(job)).get();
  auto blob = parse_blob(std::move(answer.result), answer.nonce);
  ASSERT_TRUE(blob) << blob.why << answer.fault << answer.stderr_tail;
  ASSERT_FALSE(blob.value->failure) << human_text(*blob.value->failure);
  std::string bytes(blob.value->tensors());
  EXPECT_EQ(rewrite_fault(bytes), "");
  auto file = parse_trace_file(std::make_shared<const std::string>(bytes));
  ASSERT_TRUE(file) << file.why;
  const CaseTrace* trace = file.value->find("full");
  ASSERT_TRUE(trace);
  ASSERT_EQ(file.value->kernels.size(), 1u);
  EXPECT_EQ(file.value->kernels[0].name, "kernel");
  EXPECT_NE(file.value->kernels[0].source.find("tl.sqrt(var + eps)"), std::string::npos);
  ASSERT_EQ(file.value->cubins.size(), 1u);
  const TraceCubin& cubin = file.value->cubins[0];
  EXPECT_GT(cubin.image.size(), 1000u);
  EXPECT_EQ(cubin.signature,
            (std::vector<std::string>{"*fp32", "*fp32", "*fp32", "*fp32", "i32", "fp32", "constexpr"}));
  const size_t init = trace->init_steps;
  EXPECT_GT(init, 0u);
  ASSERT_EQ(trace->tape.size(), init + 2);
  EXPECT_EQ(trace->tape[init].op, "aten.empty_like.default");
  const TraceChoice& choice = trace->tape[init + 1].choices.at(0);
  EXPECT_EQ(choice.grid, (std::array<int64_t, 3>{64, 1, 1}));
  EXPECT_EQ(choice.cubin, 0);
  EXPECT_EQ(choice.args.at(4).first, "n");
  EXPECT_EQ(choice.args.at(4).second.number, 300);
  EXPECT_EQ(choice.args.at(5).second.real, 1e-5);
  EXPECT_EQ(choice.args.at(6).second.number, 512);
  EXPECT_EQ(trace->values[static_cast<size_t>(trace->inputs.at(0).value)].shape, (std::vector<int64_t>{64, 300}));
  ASSERT_EQ(trace->parameters.size(), 2u);
  EXPECT_FALSE(trace->parameters[0].has_bytes);
  EXPECT_GT(trace->seconds.at("compile"), 0);
}

}  // namespace
}  // namespace tritonrl::live_test
