// SPDX-License-Identifier: Apache-2.0
// The judge without replayers: what it makes of candidates that were run elsewhere, and of references that are too
// large.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/slot_fixture.h"
#include "verify/replay/tape.h"

namespace tritonrl::judge_test {
namespace {

using testing::HasSubstr;
using JudgeTest = SlotTest;

TEST_F(JudgeTest, JudgesWhatWasRunElsewhere) {
  Task task;
  task.source = kTask;
  auto reference = references_->ask(task, {{"full"}}, 1234);
  ASSERT_EQ(reference->failure, "");
  auto slots = JudgeSlots::open({{"cpu"}, nullptr, false, int64_t{1} << 30});
  JudgeLease lease = slots->acquire();
  ASSERT_EQ(lease.give_task(reference->key, *reference->file.bytes).finding.outcome(), Outcome::kPass);
  JudgeRun run;
  run.task = reference->key;
  run.name = "full";
  run.weight_seed = 1234;
  run.input_seed = 5;
  const CaseTrace& trace = reference->file.cases[0];
  Json parameters = Json::array();
  for (const TraceParameter& one : trace.parameters) {
    const TraceValue& value = trace.values[static_cast<size_t>(one.value)];
    parameters.push_back({{"name", one.name}, {"shape", value.shape}, {"dtype", to_string(value.dtype)}});
  }
  JudgeAnswer given = lease.ask_about("inputs", run, {{"parameters", parameters}}, "", 60);
  ASSERT_TRUE(given.finding.passed()) << human_text(given.finding);
  EXPECT_EQ(given.body["inputs"][1], (Json{{"value", 2.5}}));
  auto tensor = [&](const Json& ref) {
    BlobView view = tensor_from(ref, given.payload);
    return at::from_blob(const_cast<char*>(view.bytes.data()), view.shape, at::kFloat).clone();
  };
  std::map<std::string, at::Tensor> weight;
  for (const Json& one : given.body["parameters"]) weight[one[0]] = tensor(one[1]);
  EXPECT_FALSE(at::equal(weight["norm.weight"], at::ones({7}))) << "weights that start as constants are moved";
  at::Tensor x = tensor(given.body["inputs"][0]), top = (x * 2.5).argmax(1);
  at::Tensor linear = at::linear(x, weight["linear.weight"], weight["linear.bias"]);
  at::Tensor y = at::relu(at::layer_norm(linear, {7}, weight["norm.weight"], weight["norm.bias"])) * 2.5;

  auto ask = [&](const Json& outputs, const std::string& payload, const Json& changed = Json::array(), int damage = 0) {
    Json more = {{"outputs", outputs}, {"changed", changed}, {"damage", damage}};
    JudgeAnswer answer = lease.ask_about("compare", run, more, payload, 60);
    return cat(name_of(answer.finding.rule()), ": ", human_text(answer.finding));
  };
  auto add = [](PayloadWriter& writer, const at::Tensor& t) {
    return writer.add({from_torch(t.scalar_type()), t.sizes().vec(),
                       std::string_view(static_cast<const char*>(t.data_ptr()), t.nbytes())});
  };
  auto judged = [&](const at::Tensor& y, const Json& changed = Json::array(), int damage = 0) {
    PayloadWriter writer;
    Json pair = {{"y", add(writer, y)}, {"top", add(writer, top)}};
    Json outputs = {{"dict", Json::array({{"y", pair["y"]}, {"top", pair["top"]}})}};
    return ask(outputs, writer.take(), changed, damage);
  };
  EXPECT_EQ(judged(y), "pass: ");
  EXPECT_THAT(judged(y + 1), HasSubstr("elements: "));
  EXPECT_THAT(judged(y / 0), HasSubstr("not_finite: "));
  EXPECT_THAT(judged(y.slice(0, 0, 8).contiguous()), HasSubstr("shape: "));
  EXPECT_THAT(judged(y.to(at::kHalf)), HasSubstr("dtype: "));
  EXPECT_THAT(judged(y, {0}), HasSubstr("input_changed: "));
  EXPECT_THAT(judged(y, Json::array(), 1), HasSubstr("writes_outside: "));
  // What a child sends need not be what it should.
  Json y_ref = {{"shape", {64, 7}}, {"dtype", "float32"}, {"offset", 0}, {"nbytes", 64 * 7 * 4}};
  auto dict = [&](const Json& top) { return Json{{"dict", Json::array({{"y", y_ref}, {"top", top}})}}; };
  std::string bytes(64 * 7 * 4, '\0');
  EXPECT_THAT(ask({{"list", Json::array()}}, ""), HasSubstr("kind: "));
  EXPECT_THAT(ask({{"dict", Json::array({{"y", y_ref}})}}, bytes), HasSubstr("items: "));
  EXPECT_THAT(ask(dict({{"value", 1}}), bytes), HasSubstr("kind: "));
  EXPECT_THAT(ask(dict(y_ref), bytes.substr(1)), HasSubstr("forged_result: "));
  EXPECT_THAT(ask(dict({{"shape", 3}}), bytes), HasSubstr("forged_result: "));
  EXPECT_THAT(ask("nothing", ""), HasSubstr("forged_result: "));
  Json truth = {{"shape", {64}}, {"dtype", "bool"}, {"offset", 0}, {"nbytes", 64}};
  EXPECT_THAT(ask(dict(truth), std::string(64 * 7 * 4, '\2')), HasSubstr("forged_result: "));
  EXPECT_EQ(judged(y), "pass: ");
}

TEST_F(JudgeTest, ReferenceThatNeedsTooMuchMemoryFailsAndTheJudgeGoesOn) {
  auto slots = JudgeSlots::open({{"cpu"}, nullptr, false, int64_t{256} << 20});
  ExecutionTools tools = replaying(*slots, *references_);
  auto lint = [&](int64_t n) {
    Task task;
    task.id = "t";
    task.source = replace_all(kTask, "N = 300", cat("N = ", n));
    Execution execution(tools, task, {{"full"}}, {1234, 4321}, Rng(5), Rng(6));
    TaskFindings found;
    Finding ended = execution.lint(30, &found);
    return cat(found.out_of_memory ? "out_of_memory" : to_string(ended.outcome()),
               execution.worth_another_try() ? " lost" : "", " ", execution.task_failure());
  };
  EXPECT_EQ(lint(300), "pass ");
  EXPECT_THAT(lint(int64_t{1} << 22), HasSubstr("out_of_memory "));
  EXPECT_EQ(lint(301), "pass ");
}

}  // namespace
}  // namespace tritonrl::judge_test
