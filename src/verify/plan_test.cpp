// SPDX-License-Identifier: Apache-2.0
// Plans: honest ones parse, every inconsistency is refused, random damage never crashes; and the policy's data flow.
#include "verify/plan.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace tritonrl {
namespace {

Json value(int64_t id, int64_t storage, std::vector<int64_t> shape = {4, 8}) {
  std::vector<int64_t> stride(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) stride[i - 1] = stride[i] * shape[i];
  return {{"id", id}, {"shape", shape}, {"stride", stride}, {"offset", 0}, {"dtype", "float32"}, {"storage", storage}};
}
Json op(const std::string& name, std::vector<int64_t> args, int64_t out) {
  Json list = Json::array();
  for (int64_t id : args) list.push_back({{"t", id}});
  return {{"op", name}, {"args", list}, {"kwargs", Json::object()}, {"out", {{"id", out}}}};
}
Json launch(std::vector<int64_t> args, std::vector<int64_t> grid = {4, 1, 1}) {
  Json list = Json::array();
  for (int64_t id : args) list.push_back({cat("p", id), {{"t", id}}});
  list.push_back({"n", {{"i", 8}}});
  return {{"launch", 0},     {"grid", grid}, {"args", list}, {"num_warps", 4},
          {"num_stages", 3}, {"cubin", 0},   {"line", 7}};
}
// x -> y = empty_like(x); launch(x, y); return y
Json honest() {
  return {{"values", {value(0, 0), value(1, 1)}},
          {"inputs", {0, nullptr}},
          {"parameters", Json::array()},
          {"tape", {op("aten.empty_like.default", {0}, 1), launch({0, 1})}},
          {"outputs", {{"id", 1}}}};
}
std::string why(const Json& plan) { return parse_plan(plan, 1, 1).why; }

TEST(Plan, ParsesAnHonestOne) {
  auto plan = parse_plan(honest(), 1, 1);
  ASSERT_TRUE(plan) << plan.why;
  EXPECT_EQ(plan.value->launches(), 1);
  EXPECT_EQ(plan.value->inputs, (std::vector<int64_t>{0, -1}));
  EXPECT_EQ(plan.value->values.at(1).end_byte(), 128);
  EXPECT_EQ(without_launches(*plan.value)["tape"].size(), 1u);
  EXPECT_TRUE(parse_plan(without_launches(*plan.value), 1, 1));
}

TEST(Plan, RefusesInconsistencies) {
  struct Case {
    const char* what;
    std::function<void(Json&)> damage;
    const char* message;
  };
  const Case cases[] = {
      {"missing member", [](Json& p) { p.erase("tape"); }, "lacks"},
      {"unknown member", [](Json& p) { p["extra"] = 1; }, "unknown member"},
      {"unknown member of a value", [](Json& p) { p["values"][0]["data"] = "x"; }, "unknown member"},
      {"two values with one id", [](Json& p) { p["values"][1]["id"] = 0; }, "one id"},
      {"negative size", [](Json& p) { p["values"][1]["shape"][0] = -4; }, "range"},
      {"huge size",
       [](Json& p) {
         p["values"][1]["shape"] = {1 << 30, 1 << 30};
       },
       "too many"},
      {"stride of another rank", [](Json& p) { p["values"][1]["stride"] = {1}; }, "disagree"},
      {"unknown dtype", [](Json& p) { p["values"][1]["dtype"] = "float31"; }, "dtype"},
      {"output of no value",
       [](Json& p) {
         p["outputs"] = {{"id", 9}};
       },
       "no value"},
      {"used before it exists",
       [](Json& p) {
         p["tape"] = {launch({0, 1}), op("aten.empty_like.default", {0}, 1)};
       },
       "before"},
      {"kernel out of range", [](Json& p) { p["tape"][1]["launch"] = 1; }, "range"},
      {"negative kernel", [](Json& p) { p["tape"][1]["launch"] = -1; }, "range"},
      {"cubin out of range", [](Json& p) { p["tape"][1]["cubin"] = 5; }, "range"},
      {"negative grid",
       [](Json& p) {
         p["tape"][1]["grid"] = {-1, 1, 1};
       },
       "range"},
      {"grid of two",
       [](Json& p) {
         p["tape"][1]["grid"] = {1, 1};
       },
       "three"},
      {"grid of text",
       [](Json& p) {
         p["tape"][1]["grid"] = {"1", 1, 1};
       },
       "integer"},
      {"view beyond its memory",
       [](Json& p) {
         p["values"].push_back(value(2, 1, {4, 9}));
         p["tape"].push_back(op("aten.view.default", {1}, 2));
       },
       "beyond"},
      {"view with an offset beyond",
       [](Json& p) {
         p["values"].push_back(value(2, 1, {8}));
         p["values"][2]["offset"] = 25;
         p["tape"].push_back(op("aten.select.int", {1}, 2));
       },
       "beyond"},
      {"memory it was not given",
       [](Json& p) {
         p["values"].push_back(value(2, 0));
         p["tape"].push_back(op("aten.view.default", {1}, 2));
       },
       "not given"},
      {"unknown argument kind",
       [](Json& p) {
         p["tape"][0]["args"][0] = {{"code", "os.system"}};
       },
       "unknown kind"},
      {"deep argument",
       [](Json& p) {
         Json arg = {{"i", 1}};
         for (int i = 0; i < 10; ++i) arg = Json{{"l", {arg}}};
         p["tape"][0]["args"][0] = arg;
       },
       "malformed"},
      {"float as text",
       [](Json& p) {
         p["tape"][0]["args"].push_back({{"f", "1; import os"}});
       },
       "float"},
      {"deep outputs",
       [](Json& p) {
         Json out = {{"id", 1}};
         for (int i = 0; i < 20; ++i) out = Json{{"list", {out}}};
         p["outputs"] = out;
       },
       "structure"},
      {"a list", [](Json& p) { p = Json::array(); }, "object"},
      {"too many steps",
       [](Json& p) {
         for (int i = 0; i < 20001; ++i) p["tape"].push_back(Json());
       },
       "more than"},
  };
  for (const Case& c : cases) {
    Json plan = honest();
    c.damage(plan);
    EXPECT_NE(why(plan).find(c.message), std::string::npos) << c.what << ": \"" << why(plan) << "\"";
  }
  EXPECT_EQ(why(honest()), "");
}

TEST(Plan, AcceptsViewsInPlaceOpsAndNonFiniteNumbers) {
  Json plan = honest();
  plan["values"].push_back(value(2, 1, {32}));
  plan["values"].push_back(value(3, 1, {8}));
  plan["values"][3]["offset"] = 24;
  plan["tape"].push_back(op("aten.view.default", {1}, 2));
  plan["tape"].push_back(op("aten.select.int", {2}, 3));
  Json fill = op("aten.fill_.Scalar", {3}, 3);
  fill["args"].push_back({{"f", "-inf"}});
  plan["tape"].push_back(fill);
  EXPECT_EQ(why(plan), "");
}

// Random damage: never a crash, and what still parses has only ids that exist.
TEST(Plan, SurvivesRandomDamage) {
  std::string text = honest().dump();
  Rng rng(7);
  int parsed = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = text;
    int64_t edits = 1 + rng.below(3);
    for (int64_t e = 0; e < edits; ++e) {
      const char* alphabet = "0123456789-{}[],:\"nulltf.eE";
      damaged[rng.below(static_cast<int64_t>(damaged.size()))] = alphabet[rng.below(27)];
    }
    Json json = Json::parse(damaged, nullptr, false);
    if (json.is_discarded()) continue;
    auto plan = parse_plan(json, 1, 1);
    if (!plan) continue;
    ++parsed;
    check_policy(*plan.value, CallPolicy::kMixed);
  }
  EXPECT_GT(parsed, 0);
}

PolicyFinding finding(const Json& plan, CallPolicy policy = CallPolicy::kStrict) {
  auto parsed = parse_plan(plan, 1, 1);
  EXPECT_TRUE(parsed) << parsed.why;
  return parsed ? check_policy(*parsed.value, policy) : PolicyFinding{};
}

TEST(Policy, HonestPlansPass) {
  EXPECT_TRUE(finding(honest()).ok);
  Json views = honest();  // The output is a view of a copy of what the launch wrote.
  views["values"].push_back(value(2, 2));
  views["values"].push_back(value(3, 2, {32}));
  views["tape"].push_back(op("aten.clone.default", {1}, 2));
  views["tape"].push_back(op("aten.view.default", {2}, 3));
  views["outputs"] = {{"tuple", {{{"id", 3}}}}};
  EXPECT_TRUE(finding(views).ok);
}

TEST(Policy, NoLaunch) {
  Json plan = honest();
  plan["tape"] = {op("aten.empty_like.default", {0}, 1)};
  EXPECT_NE(finding(plan).message.find("no Triton kernel"), std::string::npos);
}

TEST(Policy, EmptyGrid) {
  Json plan = honest();
  plan["tape"][1]["grid"] = {0, 1, 1};
  EXPECT_NE(finding(plan).message.find("empty grid"), std::string::npos);
}

TEST(Policy, Delegation) {
  Json plan = honest();
  plan["values"].push_back(value(2, 2));
  plan["tape"].push_back(op("aten.relu.default", {1}, 2));
  plan["outputs"] = {{"id", 2}};
  PolicyFinding strict = finding(plan), mixed = finding(plan, CallPolicy::kMixed);
  EXPECT_FALSE(strict.ok);
  EXPECT_NE(strict.message.find("aten.relu.default"), std::string::npos);
  EXPECT_TRUE(mixed.ok);
  EXPECT_EQ(mixed.delegated_ops, std::vector<std::string>{"aten.relu.default"});
}

TEST(Policy, DecoyWhoseResultIsThrownAway) {
  Json plan = honest();  // The launch writes y, the output is computed from x alone.
  plan["values"].push_back(value(2, 2));
  plan["values"].push_back(value(3, 3));
  plan["tape"] = {op("aten.empty_like.default", {0}, 1), launch({1}), op("aten.relu.default", {0}, 2)};
  plan["outputs"] = {{"id", 2}};
  EXPECT_NE(finding(plan, CallPolicy::kMixed).message.find("no Triton launch reaches"), std::string::npos);
}

TEST(Policy, AllocationTakesShapesOnly) {
  Json plan = honest();
  plan["values"].push_back(value(2, 2));
  plan["tape"].push_back(op("aten.ones_like.default", {1}, 2));
  plan["outputs"] = {{"id", 2}};
  EXPECT_NE(finding(plan).message.find("no Triton launch reaches"), std::string::npos);
}

TEST(Policy, OverwritingWhatTheLaunchWroteUndoesIt) {
  Json plan = honest();
  plan["values"].push_back(value(2, 2));
  Json copy = op("aten.copy_.default", {1, 2}, 1);
  plan["tape"] = {op("aten.empty_like.default", {0}, 1), launch({1}), op("aten.relu.default", {0}, 2), copy};
  EXPECT_NE(finding(plan, CallPolicy::kMixed).message.find("no Triton launch reaches"), std::string::npos);
  // Overwriting half of it does not.
  plan["values"].push_back(value(3, 1, {2, 8}));
  plan["values"].push_back(value(4, 2, {2, 8}));
  plan["tape"][3] = op("aten.slice.Tensor", {1}, 3);
  plan["tape"].push_back(op("aten.slice.Tensor", {2}, 4));
  plan["tape"].push_back(op("aten.copy_.default", {3, 4}, 3));
  EXPECT_TRUE(finding(plan, CallPolicy::kMixed).ok);
}

TEST(Policy, OutputThatIsAnInput) {
  Json plan = honest();
  plan["tape"] = {op("aten.empty_like.default", {0}, 1), launch({1})};
  plan["outputs"] = {{"tuple", {{{"id", 1}}, {{"id", 0}}}}};
  EXPECT_NE(finding(plan).message.find("one of the inputs"), std::string::npos);
}

TEST(Policy, Plumbing) {
  for (const char* name :
       {"aten.empty.memory_format", "aten._to_copy.default", "aten.t.default", "aten.zeros_like.default",
        "aten.copy_.default", "aten.constant_pad_nd.default", "aten.as_strided.default"}) {
    EXPECT_TRUE(is_plumbing(name)) << name;
  }
  for (const char* name : {"aten.mul.Tensor", "aten.mm.default", "aten.sum.dim_IntList", "aten.linear.default",
                           "prims.empty.default", "empty", "aten", ""}) {
    EXPECT_FALSE(is_plumbing(name)) << name;
  }
}

}  // namespace
}  // namespace tritonrl
