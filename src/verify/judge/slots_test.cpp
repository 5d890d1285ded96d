// SPDX-License-Identifier: Apache-2.0
// Verifier, judge and replayer as three processes, on the CPU: everything but launches. Candidates are PyTorch modules
// here (the call rules, which would refuse them, are not asked).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <future>

#include "support/slot_fixture.h"

namespace tritonrl::slots_test {
namespace {

using testing::HasSubstr;

// Somebody else works on the GPU: timing waits for it, running does not.
TEST_F(SlotTest, TimingWaitsUntilTheDevicesOtherUserGivesWay) {
  using namespace std::chrono_literals;
  SharedDevice *here = slots_->shared("cpu"), elsewhere;
  ASSERT_TRUE(here);
  EXPECT_FALSE(slots_->shared("cuda:1"));
  for (SharedDevice* shared : {here, &elsewhere}) {
    SharedDevice::Use use(shared);
    Task task;
    task.id = "t";
    task.source = kTask;
    Execution path(tools_, task, {{"full", {}, false, 2}}, {1234, 4321}, Rng(5), Rng(6));
    std::string code = replace_all(replace_all(kCandidate, "%INIT%", kSameInit), "%FORWARD%", kSameForward);
    ASSERT_EQ(path.record(code, record).outcome(), Outcome::kPass);
    EXPECT_EQ(path.full_run(30, false).outcome(), Outcome::kPass);
    auto timed = std::async(std::launch::async, [&] { return path.time(10); });
    EXPECT_TRUE(shared != here || timed.wait_for(200ms) == std::future_status::timeout);
    while (timed.wait_for(1ms) != std::future_status::ready) {
      if (shared == here) use.give_way();
    }
    timed.get();
  }
}

TEST_F(SlotTest, RightAnswersPass) {
  EXPECT_EQ(verdict(kSameInit, kSameForward), "pass: ");
  // Its parameters under other names: recognised by what __init__ makes of them.
  EXPECT_EQ(verdict("self.first = nn.Linear(n, 7); self.second = nn.LayerNorm(7)",
                    "return {'y': torch.relu(self.second(self.first(x))) * scale, 'top': (x * scale).argmax(1)}"),
            "pass: ");
}

// Weights are moved away from what __init__ leaves, and so is what it makes of them.
TEST_F(SlotTest, WhatInitMakesOfWeightsFollowsThem) {
  const std::string top = "* scale, 'top': (x * scale).argmax(1)}";
  const std::string packed = cat(
      "return {'y': torch.relu(nn.functional.layer_norm(self.linear(x), (7,), self.both[0], ", "self.both[1])) ", top);
  const std::string module = "self.linear = nn.Linear(n, 7); norm = nn.LayerNorm(7); ";
  EXPECT_EQ(verdict(cat(module, "self.both = torch.stack([norm.weight, norm.bias]).detach()"), packed), "pass: ");
  EXPECT_EQ(
      verdict(cat(kSameInit, "; self.both = nn.Parameter(torch.stack([self.norm.weight, self.norm.bias]))"), packed),
      "pass: ");
  EXPECT_THAT(verdict(cat(module, "self.both = torch.stack([norm.weight, norm.weight]).detach()"), packed),
              HasSubstr("wrong_output"));
  // Drawn in another order, copied under the task's names: the copy that forward() takes is of the task's values.
  EXPECT_EQ(verdict("torch.rand(3); self.linear = nn.Linear(n, 7); self.norm = nn.LayerNorm(7); "
                    "self.across = self.linear.weight.t().contiguous()",
                    cat("return {'y': torch.relu(self.norm(x @ self.across + self.linear.bias)) ", top)),
            "pass: ");
}

TEST_F(SlotTest, WrongAnswersDoNot) {
  auto with = [](const std::string& forward) { return verdict(kSameInit, forward); };
  EXPECT_THAT(with("return {'y': self.norm(self.linear(x)) * scale, 'top': (x * scale).argmax(1)}"),
              HasSubstr("wrong_output: output['y'] differs from the reference in"));
  EXPECT_THAT(with("return {'y': torch.relu(self.norm(self.linear(x))) * scale, 'top': (x * scale).argmin(1)}"),
              HasSubstr("wrong_output: output['top'] differs"));
  EXPECT_THAT(with("return torch.relu(self.norm(self.linear(x))) * scale"),
              HasSubstr("wrong_output: output is a tensor, expected a dict"));
  EXPECT_THAT(with("return {'y': torch.relu(self.norm(self.linear(x)))[:8] * scale, 'top': (x * scale).argmax(1)}"),
              HasSubstr("has shape (8, 7), expected (64, 7)"));
  EXPECT_THAT(
      with("return {'y': (torch.relu(self.norm(self.linear(x))) * scale).half(), 'top': (x * scale).argmax(1)}"),
      HasSubstr("has dtype float16, expected float32"));
  EXPECT_THAT(with("return {'y': torch.relu(self.norm(self.linear(x.half().float()))) * scale, "
                   "'top': (x * scale).argmax(1)}"),
              HasSubstr("wrong_output: output['y']"));
  EXPECT_THAT(with("out = {'y': torch.relu(self.norm(self.linear(x))) * scale, 'top': (x * scale).argmax(1)}; "
                   "x.zero_(); return out"),
              HasSubstr("wrong_output: input 0 is changed"));
  EXPECT_THAT(with("out = {'y': torch.relu(self.norm(self.linear(x))) * scale, 'top': (x * scale).argmax(1)}; "
                   "self.linear.weight.data.mul_(1.5); return out"),
              HasSubstr("wrong_output: parameter linear.weight is changed"));
  // A LayerNorm without its weights shows, because weights that start as constants are moved.
  EXPECT_THAT(with("return {'y': torch.relu(nn.functional.layer_norm(self.linear(x), (7,))) * scale, "
                   "'top': (x * scale).argmax(1)}"),
              HasSubstr("wrong_output"));
}

TEST_F(SlotTest, CandidatesMayChangeWhatIsTheirsAlone) {
  EXPECT_EQ(verdict(cat(kSameInit, "; self.count = torch.zeros(3)"), cat("self.count.add_(1); ", kSameForward)),
            "pass: ");
}

TEST_F(SlotTest, CandidatesThatFailAreTheirOwnFault) {
  EXPECT_THAT(verdict(kSameInit, "return x.index_select(0, torch.arange(100, 101, device=x.device))"),
              HasSubstr("runtime_error: aten.index_select"));
}

TEST_F(SlotTest, LintTellsWhichWrongAnswersWouldPass) {
  auto lint = [](const std::string& forward, const std::string& inputs = "torch.randn(64, 32)") {
    Task task;
    task.id = "t";
    task.source =
        cat("import torch\nimport torch.nn as nn\nclass Model(nn.Module):\n  def forward(self, x):\n    return ",
            forward, "\ndef get_inputs():\n  return [", inputs, "]\ndef get_init_inputs():\n  return []\n");
    Execution path(tools_, task, {{"full", {}, false, 2}}, {1234, 4321}, Rng(5), Rng(6));
    TaskFindings found;
    Finding ended = path.lint(30, &found);
    EXPECT_EQ(ended.outcome(), Outcome::kPass) << human_text(ended);
    std::vector<std::string> out;
    for (const auto& [flag, detail] : found.flags) {
      out.push_back(flag == "control" || flag == "drop" ? detail.substr(0, detail.find(" would")) : flag);
    }
    return join(out, ", ");
  };
  EXPECT_EQ(lint("torch.relu(x) * 2"), "");
  EXPECT_EQ(lint("torch.relu(x).select(1, 3)"), "");  // Flat, with a stride.
  EXPECT_EQ(lint("torch.relu(x).sum()"), "");         // A single number is its own mean.
  EXPECT_EQ(lint("torch.relu(torch.sigmoid(x))"), "drop aten.relu.default");
  EXPECT_EQ(lint("x.abs().neg().relu() + 0"),
            "zeros, means, negated outputs, rotated outputs, zero, input_independent, drop aten.add.Tensor");
  EXPECT_EQ(lint("torch.softmax(x, 1).sum(1) * 3"), "means, rotated outputs, input_independent");
  EXPECT_EQ(lint("torch.full_like(x, 2.5)"), "means, rotated outputs, constant, input_independent");
  EXPECT_EQ(lint("x * x", "torch.ones(64, 32)"),
            "means, rotated outputs, constant, drop aten.mul.Tensor, seed_invariant");
}

TEST_F(SlotTest, ReplayerThatDisappearsIsNotTheCandidatesFault) {
  EXPECT_EQ(verdict(kSameInit, kSameForward), "pass: ");  // Both replayers are up now.
  int killed = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream stat(entry.path() / "stat");
    std::string id, name, state, parent;
    if (!(stat >> id >> name >> state >> parent) || parent != std::to_string(slots_->acquire().judge_process()))
      continue;
    killed += ::kill(std::stoi(id), SIGKILL) == 0;
    break;  // The one at work; the spare is younger.
  }
  EXPECT_EQ(killed, 1);
  EXPECT_EQ(verdict(kSameInit, kSameForward), "pass: ");
}

constexpr const char* kCountingTask = R"(import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x, scale):
        self.calls.add_(1)
        return x * self.calls

def get_inputs():
    return [torch.randn(64, 7), 2.5]

def get_init_inputs():
    return [7]
)";

// Nothing is launched here, so who gets as far as the run without launches was right before.
TEST_F(SlotTest, FurtherCallsAreJudgedWithWhatTheFirstOnesLeft) {
  auto with = [](const std::string& init, const std::string& forward, const char* source = kTask) {
    Task task;
    task.id = "t";
    task.source = source;
    Execution path(tools_, task, {{"full", {}, false, 2}}, {1234, 4321}, Rng(5), Rng(6));
    std::string code = replace_all(replace_all(kCandidate, "%INIT%", init), "%FORWARD%", forward);
    Finding ended = path.record(code, record);
    if (ended.passed()) ended = path.tiny_run(30);
    std::string call = ended.told.call > 0 ? cat(" in call ", ended.told.call) : "";
    return cat(name_of(ended.rule()), call, path.keeps_state() ? ", state" : "");
  };
  const std::string init = cat(kSameInit, "; self.kept = None; self.of = {}; self.calls = torch.zeros(1)");
  const std::string y = "torch.relu(self.norm(self.linear(x))) * scale";
  const std::string rest = "; return {'y': out, 'top': (x * scale).argmax(1)}";
  EXPECT_EQ(with(init, kSameForward), "same_without_launches");
  EXPECT_EQ(with(init, cat("self.kept = ", y, " if self.kept is None else self.kept; out = self.kept", rest)),
            "elements in call 2, state");
  EXPECT_EQ(with(init, cat("self.kept = torch.empty(64, 7, device=x.device) if self.kept is None else self.kept; ",
                           "out = self.kept; out.copy_(", y, ")", rest)),
            "same_without_launches, state");
  EXPECT_EQ(with(init, cat("out = self.of[x.data_ptr()] = self.of.get(x.data_ptr()) if x.data_ptr() in self.of else ",
                           y, rest)),
            "elements in call 3, state");
  // The tape is the same each time, and what it changes is not.
  EXPECT_EQ(with(init, cat("self.calls.add_(1); out = ", y, rest)), "same_without_launches, state");
  EXPECT_EQ(with(init, cat("self.calls.add_(1); out = ", y, " * self.calls", rest)), "elements in call 2, state");
  // So it is with what the task itself keeps.
  const std::string own = "self.register_buffer('calls', torch.zeros(1))";
  EXPECT_EQ(with(own, "self.calls.add_(1); return x * self.calls", kCountingTask), "same_without_launches, state");
  EXPECT_EQ(with(own, "return x * (self.calls + 1)", kCountingTask), "elements in call 2, state");
}

TEST_F(SlotTest, AdditionalCases) {
  auto honest = cases(kSameForward);
  EXPECT_EQ(honest.size(), 1 + kValueTransforms.size() + 3);
  for (const auto& [name, result] : honest) {
    if (name == "nothing") {
      EXPECT_TRUE(result.skipped);
      EXPECT_EQ(*result.skipped, "there is no such thing");
      continue;
    }
    ASSERT_FALSE(result.skipped) << name << " is skipped: " << *result.skipped;
    EXPECT_TRUE(result.finding.passed()) << name << ": " << human_text(result.finding);
    EXPECT_TRUE(result.worst && *result.worst <= 1) << name;
  }
  // Right where inputs are as get_inputs() draws them, and only there.
  auto bounded = cases(replace_all(kSameForward, "self.linear(x)", "self.linear(x.clamp(-6, 6))"));
  EXPECT_EQ(bounded["full"].outcome(), Outcome::kPass);
  EXPECT_EQ(bounded["uniform"].outcome(), Outcome::kPass);
  EXPECT_EQ(bounded["large"].outcome(), Outcome::kWrongOutput);
  EXPECT_EQ(bounded["cancelling"].outcome(), Outcome::kWrongOutput);
  auto one_size = cases(replace_all(kSameForward, "self.linear(x)", "self.linear(x.view(64, 300))"));
  EXPECT_EQ(one_size["larger"].outcome(), Outcome::kRuntimeError) << human_text(one_size["larger"].finding);
  EXPECT_EQ(one_size["precision"].outcome(), Outcome::kPass) << human_text(one_size["precision"].finding);
  auto one_dtype =
      cases(replace_all(kSameForward, "'y': ", "'y': 1.0 * torch.ones_like(x[:, :1], dtype=torch.float32) * "));
  EXPECT_TRUE(one_dtype["precision"].skipped) << "its outputs have another dtype: it is not written for that";
  EXPECT_EQ(one_dtype["larger"].outcome(), Outcome::kPass) << human_text(one_dtype["larger"].finding);
}

TEST_F(SlotTest, CasesThatTheReferenceCannotDoAreSkipped) {
  std::string task = replace_all(
      kTask, "    def forward(self, x, scale):\n",
      "    def forward(self, x, scale):\n        x = x.view(64, 300)\n        assert x.dtype == torch.float32\n");
  auto results = cases(kSameForward, task);
  EXPECT_TRUE(results["larger"].skipped);
  EXPECT_TRUE(results["precision"].skipped);
  EXPECT_NE(results["larger"].skipped.value_or(""), "");
}

// A replayer in Python that greets and then ends by a signal as soon as it is asked for anything.
constexpr const char* kDyingReplayer = R"(import json, os, socket, struct
os.close(2)  # Its judge may be gone before it.
wire = socket.socket(fileno=3).makefile("rwb")
while lengths := wire.read(12):
    header, payload = struct.unpack("<IQ", lengths)
    if json.loads(wire.read(header))["do"] != "hello":
        os.kill(os.getpid(), %SIGNAL%)
    answer = b'{"ok": true}'
    wire.write(struct.pack("<IQ", len(answer), 0) + answer)
    wire.flush()
)";

TEST_F(SlotTest, WhoIsToBlameForLostReplayers) {
  Task task;
  task.source = kTask;
  auto reference = references_->ask(task, {{"full", {}, false, 1}}, 1234);
  ASSERT_EQ(reference->failure, "");
  auto program = std::filesystem::temp_directory_path() / cat("dying_replayer_", ::getpid());
  for (int signal : {SIGKILL, SIGSEGV, SIGABRT}) {
    write_file(program, cat("#!", python_program(), " -I\n", replace_all(kDyingReplayer, "%SIGNAL%", cat(signal))));
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    auto judge = Channel::start({cat(build_dir(), "/tritonrl_judge"), "cpu", program.string()});
    auto ask = [&](const Json& question, const std::string& payload = "") {
      ChannelMessage reply;
      judge->send(question, payload);
      EXPECT_EQ(judge->receive(&reply, 120), Channel::Answer::kCame);
      return reply.header;
    };
    EXPECT_EQ(ask({{"do", "hello"}})["finding"]["rule"], "pass");
    EXPECT_EQ(ask({{"do", "task"}, {"key", reference->key}}, *reference->file.bytes)["finding"]["rule"], "pass");
    EXPECT_EQ(ask({{"do", "candidate"}}, *reference->file.bytes)["finding"]["rule"], "pass");
    Json answer = ask({{"do", "run"},
                       {"task", reference->key},
                       {"case", "full"},
                       {"weight_seed", 1234},
                       {"noise_seed", 4321},
                       {"input_seed", 5},
                       {"poison", 6},
                       {"deadline_s", 60}});
    EXPECT_EQ(answer["finding"]["rule"], signal == SIGKILL ? "verifier_failed" : "process_ended") << answer;
    EXPECT_EQ(answer.value("lost", false), signal == SIGKILL) << answer;
  }
  std::filesystem::remove(program);
}

TEST(Judge, GivesUpAGpuOnWhichNoReplayerComesUp) {
  auto judge = Channel::start({cat(build_dir(), "/tritonrl_judge"), "cpu", "/bin/false"});
  judge->send({{"do", "hello"}});
  ChannelMessage reply;
  ASSERT_EQ(judge->receive(&reply, 60), Channel::Answer::kCame);
  EXPECT_EQ(reply.header["finding"]["rule"], "verifier_failed");
  EXPECT_THAT(reply.header["quarantined"].get<std::string>(), HasSubstr("no replayer comes up"));
}

TEST_F(SlotTest, DeadJudgeIsReplaced) {
  {
    JudgeLease lease = slots_->acquire();
    JudgeRun run;
    run.task = "no such task";
    run.name = "full";
    run.deadline_s = 5;
    JudgeAnswer answer = lease.run(run);
    EXPECT_EQ(answer.finding.outcome(), Outcome::kHarnessFault);
    EXPECT_FALSE(answer.lost);
    lease.kill_judge();
    answer = lease.run(run);
    EXPECT_TRUE(answer.lost);
  }
  EXPECT_EQ(verdict(kSameInit, kSameForward), "pass: ");
}

TEST_F(SlotTest, LostJudgeGivesTheGpuBackForAnotherAttempt) {
  Task task;
  task.source = kTask;
  ASSERT_EQ(::kill(slots_->acquire().judge_process(), SIGKILL), 0);
  Execution first(tools_, task, {{"full", {}, false, 2}}, {1234, 4321}, Rng(5), Rng(6));
  TaskFindings found;
  EXPECT_EQ(first.lint(30, &found).outcome(), Outcome::kHarnessFault);
  EXPECT_TRUE(first.worth_another_try());
  // `first` is still there, and there is one GPU only: whoever keeps it makes this wait for ever.
  Execution second(tools_, task, {{"full", {}, false, 2}}, {1234, 4321}, Rng(5), Rng(6));
  Finding ended = second.lint(30, &found);
  EXPECT_EQ(ended.outcome(), Outcome::kPass) << human_text(ended);
}

TEST_F(SlotTest, ReferenceThatEndsTheContextIsBlamedAlone) {
  if (JudgeSlots::devices().empty()) GTEST_SKIP() << "no NVIDIA GPU on this machine";
  auto slots = JudgeSlots::open({{JudgeSlots::devices()[0]}});
  ReferenceCache references(*pool_, 60, int64_t{1} << 30);
  ExecutionTools tools = replaying(*slots, references);
  tools.target = [&] { return slots->next_target(); };
  auto lint = [&](const std::string& forward) {
    Task task;
    task.source =
        cat("import torch\nimport torch.nn as nn\nclass Model(nn.Module):\n  def forward(self, x):\n    return ",
            forward, "\ndef get_inputs():\n  return [torch.randn(64)]\ndef get_init_inputs():\n  return []\n");
    TaskFindings found;
    Execution path(tools, task, {{"full", {}, false, 2}}, {1234, 4321}, Rng(5), Rng(6));
    Finding ended = path.lint(30, &found);
    return cat(to_string(ended.outcome()), path.worth_another_try() ? " lost " : " ", path.task_failure());
  };
  const std::string outside = "torch.nn.functional.binary_cross_entropy(x * 9, x * 0 + 1)";
  EXPECT_EQ(lint("torch.relu(x)"), "pass ");
  for (int attempt = 0; attempt < 2; ++attempt) {
    EXPECT_EQ(lint(outside), "harness_fault lost ");
    EXPECT_EQ(lint("torch.relu(x)"), "pass ");
  }
  EXPECT_THAT(lint(outside), HasSubstr("harness_fault the reference ends the GPU's context"));
}

TEST_F(SlotTest, TimingNeedsAGpu) {
  Task task;
  task.source = kTask;
  Execution path(tools_, task, {{"full", {}, false, 1}}, {1234, 4321}, Rng(5), Rng(6));
  std::string code = replace_all(replace_all(kCandidate, "%INIT%", kSameInit), "%FORWARD%", kSameForward);
  ASSERT_EQ(path.record(code, record).outcome(), Outcome::kPass);
  Finding ended = path.time(10);
  EXPECT_EQ(ended.outcome(), Outcome::kUnsupported) << human_text(ended);
}

}  // namespace
}  // namespace tritonrl::slots_test
