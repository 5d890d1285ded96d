// SPDX-License-Identifier: Apache-2.0
#include "base/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files/json.h"

namespace tritonrl::config_test {
namespace {

using testing::HasSubstr;

struct Inner {
  double lr = 1e-3;
  std::vector<int64_t> sizes = {1, 2};
  template <class V>
  void for_each_field(V& v) {
    v("lr", lr, "learning rate");
    v("sizes", sizes, "");
  }
  void validate() const {
    if (lr <= 0) throw usage_error("lr must be positive");
  }
};

enum class Kind { kAlpha, kA };
constexpr auto enum_names(Kind) { return std::array{"alpha", "a"}; }

struct Outer {
  int64_t steps = 4;
  bool fast = false;
  std::string name = "x: #1";
  Kind kind = Kind::kA;
  Inner inner;
  template <class V>
  void for_each_field(V& v) {
    v("steps", steps, "how many");
    v("fast", fast, "");
    v("name", name, "");
    v("kind", kind, "which");
    v("inner", inner, "");
  }
};

std::string file(const std::string& name, const std::string& text) {
  std::string path = testing::TempDir() + "/config_" + name + ".yaml";
  write_file(path, text);
  return path;
}

std::string error(const std::vector<std::string>& files, const std::vector<std::string>& sets = {}) {
  try {
    load_config<Outer>(files, sets);
  } catch (const Error& e) {
    EXPECT_EQ(e.exit_code(), 2);
    return e.what();
  }
  return "no error";
}

TEST(Config, DefaultsThenFilesThenSets) {
  auto a = file("a", "steps: 5\ninner:\n  lr: 0.5\n"), b = file("b", "inner: {lr: 0.25}\n");
  Outer config = load_config<Outer>({a, b}, {"inner.sizes=[7, 8, 9]", "fast=true"});
  EXPECT_EQ(config.steps, 5);
  EXPECT_EQ(config.inner.lr, 0.25);
  EXPECT_EQ(config.inner.sizes, (std::vector<int64_t>{7, 8, 9}));
  EXPECT_TRUE(config.fast);
}

TEST(Config, PrintedConfigLoadsToTheSame) {
  Outer config = load_config<Outer>({}, {"inner.lr=0.1", "name=\"  two words: [x]\""});
  auto path = file("round", to_yaml(config));
  Outer again = load_config<Outer>({path}, {});
  EXPECT_EQ(to_yaml(again), to_yaml(config));
  EXPECT_EQ(again.name, "  two words: [x]");
  EXPECT_THAT(to_yaml(config, true), HasSubstr("# learning rate"));
}

TEST(Config, UnknownKeysNameFileLineAndNearestKey) {
  auto path = file("typo", "steps: 5\ninner:\n  lrr: 1\n");
  EXPECT_THAT(error({path}), HasSubstr(path + ":3: unknown key 'inner.lrr'"));
  EXPECT_THAT(error({path}), HasSubstr("did you mean 'inner.lr'?"));
  EXPECT_THAT(error({}, {"stepps=1"}), HasSubstr("--set stepps=1: unknown key 'stepps'"));
  EXPECT_THAT(error({}, {"stepps=1"}), HasSubstr("did you mean 'steps'?"));
}

TEST(Config, UnknownKeysAreLookedForInOtherSections) {
  EXPECT_THAT(error({}, {"lr=1"}), HasSubstr("did you mean 'inner.lr'?"));           // Of the same name, deeper.
  EXPECT_THAT(error({}, {"inner.steps=1"}), HasSubstr("did you mean 'steps'?"));     // Of the same name, elsewhere.
  EXPECT_THAT(error({}, {"sizess=[1]"}), HasSubstr("did you mean 'inner.sizes'?"));  // Close, deeper.
  EXPECT_THAT(error({}, {"inner.unheard_of=1"}), HasSubstr("valid keys here: lr, sizes"));
  EXPECT_THAT(error({}, {"inner.lr.x=1"}), HasSubstr("inner.lr must be a number, got a map"));
}

TEST(Config, WrongTypesAreRefused) {
  EXPECT_THAT(error({}, {"steps=many"}), HasSubstr("steps must be a whole number, got 'many'"));
  EXPECT_THAT(error({}, {"steps=1.5"}), HasSubstr("whole number"));
  EXPECT_THAT(error({}, {"fast=1"}), HasSubstr("true or false"));
  EXPECT_THAT(error({}, {"inner=3"}), HasSubstr("inner must be a map"));
  EXPECT_THAT(error({}, {"inner.lr=nan"}), HasSubstr("finite"));
  EXPECT_THAT(error({}, {"inner.sizes=3"}), HasSubstr("a list"));
  EXPECT_THAT(error({}, {"kind=alfa"}), HasSubstr("did you mean 'alpha'?"));
}

TEST(Config, EnumsHaveOneTableOfNames) {
  EXPECT_EQ(load_config<Outer>({}, {"kind=alpha"}).kind, Kind::kAlpha);
  EXPECT_STREQ(name_of(Kind::kA), "a");
  EXPECT_EQ(named<Kind>("alpha"), Kind::kAlpha);
  EXPECT_EQ(named<Kind>("Alpha"), std::nullopt);
  EXPECT_EQ(names_of<Kind>(), (std::vector<std::string>{"alpha", "a"}));
  EXPECT_THAT(to_yaml(Outer{}, true), HasSubstr("kind: a"));
  EXPECT_THAT(to_yaml(Outer{}, true), HasSubstr("# which (alpha | a)"));
  EXPECT_THAT(error({}, {"kind=[a]"}), HasSubstr("kind must be one of: alpha, a, got a list"));
}

// A tag that chooses defaults and keys.
struct Shape {
  Kind kind = Kind::kA;
  int64_t corners = 3;
  Inner inner;
  template <class V>
  void for_each_field(V& v) {
    v("kind", kind, "");
    v.renamed("sort", "kind");
    v.then([&] { corners = kind == Kind::kA ? 3 : 12; });
    v("corners", corners, "");
    v.when(kind == Kind::kAlpha, "kind: alpha", [&] { v("inner", inner, ""); });
  }
};

TEST(Config, ATagChoosesDefaultsAndKeys) {
  auto refusal = [](const std::vector<std::string>& sets) -> std::string {
    try {
      load_config<Shape>({}, sets);
    } catch (const Error& e) {
      return e.what();
    }
    return "none";
  };
  EXPECT_EQ(load_config<Shape>({}, {"kind=alpha"}).corners, 12);
  EXPECT_EQ(load_config<Shape>({}, {"corners=5", "kind=alpha"}).corners, 5) << "a value that is given wins";
  EXPECT_EQ(load_config<Shape>({}, {"kind=alpha", "inner.lr=0.5"}).inner.lr, 0.5);
  EXPECT_THAT(refusal({"inner.lr=0.5"}), HasSubstr("key 'inner' is for kind: alpha only"));
  EXPECT_THAT(refusal({"sort=alpha", "inner.lr=0.5"}), HasSubstr("unknown key 'sort'"));
  EXPECT_THAT(refusal({"sort=alpha", "inner.lr=0.5"}), HasSubstr("it is 'kind' now"));
  EXPECT_THAT(refusal({"kind=alpha", "inner.lr=0"}), HasSubstr("inner: lr must be positive"));
  EXPECT_EQ(to_yaml(Shape{}), "kind: a\ncorners: 3\n");
}

TEST(Config, BadCombinationsNameTheirSection) {
  auto path = file("combination", "steps: 1\ninner: {lr: -1}\n");
  EXPECT_THAT(error({path}), HasSubstr(path + ":2: inner: lr must be positive"));
}

TEST(Config, BrokenFiles) {
  EXPECT_THAT(error({"no/such/file.yaml"}), HasSubstr("no such config file"));
  EXPECT_THAT(error({file("list", "- 1\n")}), HasSubstr("a map of sections"));
  EXPECT_THAT(error({file("broken", "a: [1\n")}), HasSubstr("not valid YAML"));
  EXPECT_THAT(error({file("twice", "steps: 1\nsteps: 2\n")}), HasSubstr("twice"));
  EXPECT_THAT(error({}, {"steps"}), HasSubstr("key.path=value"));
}

}  // namespace
}  // namespace tritonrl::config_test
