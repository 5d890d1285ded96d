// SPDX-License-Identifier: Apache-2.0
// Everything of judge and replayer that needs no GPU, on the CPU.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "verify/replay/tape.h"
#include "verify/trace/init_values.h"

namespace tritonrl::verify_gpu_test {
namespace {

using testing::HasSubstr;
using Arg = TraceArg;

Arg tensor(int64_t id) { return {Arg::Kind::kTensor, id, 0, "", {}}; }
Arg integer(int64_t n) { return {Arg::Kind::kInt, n, 0, "", {}}; }
Arg real(double x) { return {Arg::Kind::kFloat, 0, x, "", {}}; }
Arg list(std::vector<Arg> items) { return {Arg::Kind::kList, 0, 0, "", std::move(items)}; }
Nest<int64_t> leaf(int64_t id) {
  Nest<int64_t> nest;
  nest.kind = Nest<int64_t>::Kind::kLeaf;
  nest.leaf = id;
  return nest;
}

class TapeTest : public testing::Test {
 protected:
  int64_t value(std::vector<int64_t> shape, std::vector<int64_t> stride, Dtype dtype = Dtype::kFloat32) {
    TraceValue v;
    v.shape = std::move(shape);
    v.stride = std::move(stride);
    v.dtype = dtype;
    v.storage = static_cast<int64_t>(trace_.values.size());
    trace_.values.push_back(v);
    return v.storage;
  }
  void call(const std::string& op, std::vector<Arg> args, int64_t out, NamedArgs kwargs = {}) {
    TraceStep step;
    step.op = op;
    for (const Arg& arg : args) {
      if (arg.kind == Arg::Kind::kTensor) step.reads.push_back(arg.number);
    }
    step.args = std::move(args);
    step.kwargs = std::move(kwargs);
    step.result = leaf(out);
    step.outs = {out};
    trace_.tape.push_back(std::move(step));
  }
  Tape tape(bool in_double = false) { return Tape(file_, trace_, {at::kCPU, in_double, nullptr}); }
  std::string failure(const std::function<void()>& fn) {
    try {
      fn();
    } catch (const ReplayFailure& f) {
      return cat(to_string(f.finding.outcome()), ": ", human_text(f.finding));
    }
    return "none";
  }
  TraceFile file_;
  CaseTrace trace_;
};

TEST_F(TapeTest, RunsOperatorsAsPyTorchWould) {
  int64_t x = value({2, 3}, {3, 1}), half = value({2, 3}, {3, 1}), t = value({3, 2}, {1, 3}), sum = value({3}, {1});
  trace_.inputs.push_back({x, {}});
  call("aten.div.Tensor", {tensor(x), real(2.0)}, half);  // A wrapped number: the result stays float32.
  call("aten.transpose.int", {tensor(half), integer(0), integer(1)}, t);
  call("aten.sum.dim_IntList", {tensor(t), list({integer(1)})}, sum, {{"dtype", {Arg::Kind::kNone, 0, 0, "", {}}}});
  trace_.outputs = leaf(sum);
  Tape run = tape();
  at::Tensor input = at::arange(6, at::kFloat).view({2, 3});
  run.bind(x, input);
  run.run_forward();
  EXPECT_TRUE(at::equal(run.outputs()[0], (input / 2).sum(0)));
  EXPECT_FALSE(run.has(half)) << "values are let go after their last use";
  run.run_forward();
  EXPECT_TRUE(at::equal(run.outputs()[0], (input / 2).sum(0)));

  Tape exact = tape(/*in_double=*/true);
  exact.bind(x, input.to(at::kDouble));
  exact.run_forward();
  EXPECT_EQ(exact.outputs()[0].scalar_type(), at::kDouble);
}

TEST_F(TapeTest, SectionsDrawFromTheSeed) {
  int64_t weight = value({4}, {1}), drawn = value({4}, {1}), x = value({4}, {1}), y = value({4}, {1});
  call("aten.empty.memory_format", {list({integer(4)})}, weight, {{"dtype", {Arg::Kind::kDtype, 0, 0, "", {}}}});
  call("aten.normal_.default", {tensor(weight), real(0.0), real(1.0)}, drawn);
  trace_.init_steps = 2;
  call("aten.rand.default", {list({integer(4)})}, x, {{"device", {Arg::Kind::kDevice, 1, 0, "", {}}}});
  trace_.input_steps = 1;
  call("aten.mul.Tensor", {tensor(x), tensor(drawn)}, y);
  trace_.inputs.push_back({x, {}});
  trace_.parameters.push_back({"weight", drawn, false, false, {}});
  trace_.outputs = leaf(y);
  Tape run = tape();
  at::manual_seed(7);
  run.run_init();
  run.run_inputs();
  run.run_forward();
  at::Tensor first = run.outputs()[0].clone();
  at::manual_seed(7);
  at::Tensor w = at::empty({4}).normal_(), input = at::rand({4});
  EXPECT_TRUE(at::equal(first, w * input));
  run.forget_forward();
  EXPECT_TRUE(run.has(drawn)) << "weights stay";
  EXPECT_FALSE(run.has(y));
}

TEST_F(TapeTest, PinsTakeThePlaceOfWhatInitMakes) {
  int64_t weight = value({4}, {1}), twice = value({4}, {1}), y = value({4}, {1});
  call("aten.rand.default", {list({integer(4)})}, weight);
  call("aten.add.Tensor", {tensor(weight), tensor(weight)}, twice);
  trace_.init_steps = 2;
  call("aten.sub.Tensor", {tensor(twice), tensor(weight)}, y);
  trace_.outputs = leaf(y);
  Tape run = tape();
  at::Tensor given = at::arange(4, at::kFloat);
  run.run_init({{weight, 0, given}});
  run.run_forward();
  EXPECT_TRUE(at::equal(run.value(twice), given * 2));
  EXPECT_TRUE(at::equal(run.outputs()[0], given));
  run.run_init({{weight, 1, given}});  // Too late for what is made of it.
  EXPECT_FALSE(at::equal(run.value(twice), given * 2));
  EXPECT_TRUE(at::equal(run.value(weight), given));
}

TEST_F(TapeTest, CopiesIntoTheRecordedLayout) {
  int64_t x = value({2, 3}, {3, 1}),
          y = value({2, 3}, {1, 2});  // The recorder saw another layout than a library makes.
  trace_.inputs.push_back({x, {}});
  call("aten.relu.default", {tensor(x)}, y);
  trace_.outputs = leaf(y);
  Tape run = tape();
  run.bind(x, at::ones({2, 3}));
  run.run_forward();
  EXPECT_EQ(run.outputs()[0].strides(), at::IntArrayRef({1, 2}));
}

TEST_F(TapeTest, RelocationMovesMemoryAndNothingElse) {
  int64_t x = value({2, 3}, {3, 1}), w = value({3}, {2}), tied = value({2}, {1}), y = value({2, 3}, {3, 1});
  trace_.inputs.push_back({x, {}});
  trace_.parameters.push_back({"w", w, false, false, {}});
  trace_.parameters.push_back({"tied", tied, false, false, {}});
  call("aten.mul.Tensor", {tensor(x), tensor(w)}, y);
  trace_.outputs = leaf(y);
  Tape run = tape();
  at::Tensor input = at::arange(6, at::kFloat).view({2, 3}), buffer = at::arange(8, at::kFloat);
  run.bind(x, input);
  run.bind(w, buffer.as_strided({3}, {2}, 1));
  run.bind(tied, buffer.as_strided({2}, {1}, 3));
  run.run_forward();
  at::Tensor before = run.outputs()[0].clone();
  run.forget_forward();
  ASSERT_TRUE(run.relocate());
  EXPECT_NE(run.value(x).data_ptr(), input.data_ptr());
  EXPECT_NE(run.value(w).data_ptr(), buffer.as_strided({3}, {2}, 1).data_ptr());
  EXPECT_EQ(run.value(w).strides(), at::IntArrayRef({2}));
  EXPECT_EQ(run.value(w).storage_offset(), 1);
  EXPECT_TRUE(run.value(w).is_alias_of(run.value(tied)));
  EXPECT_TRUE(at::equal(run.value(x), input));
  EXPECT_TRUE(at::equal(run.value(tied), buffer.as_strided({2}, {1}, 3)));
  run.value(tied)[0] = 100;  // Element 3 of the buffer, which w sees as its second.
  EXPECT_EQ(run.value(w)[1].item<float>(), 100);
  EXPECT_EQ(buffer[3].item<float>(), 3) << "what was there before is left alone";
  run.value(tied)[0] = 3;
  run.run_forward();
  EXPECT_TRUE(at::equal(run.outputs()[0], before));
}

TEST_F(TapeTest, WhatDoesNotFitIsTheTracesFailure) {
  int64_t x = value({2, 3}, {3, 1}), y = value({3, 2}, {2, 1});
  trace_.inputs.push_back({x, {}});
  trace_.outputs = leaf(y);
  auto failing = [&](const std::string& op, std::vector<Arg> args, NamedArgs kwargs = {}) {
    trace_.tape.clear();
    call(op, std::move(args), y, std::move(kwargs));
    return failure([&] {
      Tape run = tape();
      run.bind(x, at::ones({2, 3}));
      run.run_forward();
    });
  };
  EXPECT_THAT(failing("aten.relu.default", {tensor(x)}), HasSubstr("tampered: a step gives shape (2, 3)"));
  EXPECT_THAT(failing("aten.no_such.default", {tensor(x)}), HasSubstr("unsupported: operator aten.no_such.default"));
  EXPECT_THAT(failing("aten.relu.default", {}), HasSubstr("tampered: aten.relu.default lacks argument self"));
  EXPECT_THAT(failing("aten.relu.default", {tensor(x), tensor(x)}), HasSubstr("too many arguments"));
  EXPECT_THAT(failing("aten.relu.default", {tensor(x)}, {{"alpha", real(1)}}), HasSubstr("has no argument alpha"));
  EXPECT_THAT(failing("aten.mm.default", {tensor(x), tensor(x)}), HasSubstr("runtime_error: aten.mm.default"));
  EXPECT_THAT(failing("aten.view.default", {tensor(x), list({real(1)})}), HasSubstr("tampered"));
  EXPECT_THAT(failing("aten.relu.default", {tensor(y)}), HasSubstr("never made"));
  trace_.tape.clear();
  TraceStep launch;
  launch.is_launch = true;
  launch.kernel = 0;
  launch.choices.resize(1);
  trace_.tape.push_back(launch);
  EXPECT_THAT(failure([&] {
                Tape run = tape();
                run.run_forward();
              }),
              HasSubstr("unsupported: Triton launches need a GPU"));
}

// trace/init_values.h knows operators by their names; PyTorch knows what they write to.
TEST(InitValues, WhatOperatorsWriteToIsAmongWhatIsSaid) {
  size_t looked_at = 0;
  for (const c10::OperatorName& op : c10::Dispatcher::singleton().getAllOpNames()) {
    auto handle = c10::Dispatcher::singleton().findSchema(op);
    if (!handle || op.name.rfind("aten::", 0) != 0) continue;
    std::set<c10::Symbol> returned;
    for (const auto& result : handle->schema().returns()) {
      if (result.alias_info())
        returned.insert(result.alias_info()->beforeSets().begin(), result.alias_info()->beforeSets().end());
    }
    const auto& arguments = handle->schema().arguments();
    bool first = false, others = false;  // Written to; what is returned is seen as a result.
    for (size_t i = 0; i < arguments.size(); ++i) {
      const auto* alias = arguments[i].alias_info();
      if (!alias || !alias->isWrite()) continue;
      bool seen = std::ranges::any_of(alias->beforeSets(), [&](const auto& set) { return returned.count(set) > 0; });
      if (i == 0) first = true;
      if (i > 0 && !seen) others = true;
    }
    if (!first && !others) continue;
    ++looked_at;
    TraceStep step;
    step.op = cat("aten.", op.name.substr(6), ".", op.overload_name.empty() ? "default" : op.overload_name);
    step.reads = {0, 1, 2};
    std::vector<int64_t> written = written_by(step);
    static const std::set<std::string> harmless = {"aten.record_stream.default", "aten.retain_grad.default"};
    if (harmless.count(step.op)) continue;
    EXPECT_TRUE(!others || written == step.reads) << step.op;
    EXPECT_TRUE(!first || !written.empty()) << step.op;
  }
  EXPECT_GT(looked_at, 400u);
}

}  // namespace
}  // namespace tritonrl::verify_gpu_test
