// SPDX-License-Identifier: Apache-2.0
// Structs to JSON and back: what is left out, what is refused, and what the error says.
#include "base/files/json_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tritonrl::json_fields_test {
namespace {

enum class Colour { kRed, kBlue };
constexpr auto enum_names(Colour) { return std::array{"red", "blue"}; }

struct Part {
  static constexpr bool kNoOtherFields = true;
  int weight = 0;
  bool operator==(const Part&) const = default;
  template <class Self, class V>
  static void json_fields(Self& self, V& v) {
    v("weight", self.weight);
  }
  std::string problem() const { return weight < 0 ? "it weighs less than nothing" : ""; }
};

struct Whole {
  std::string name;
  Colour colour = Colour::kRed;
  std::optional<double> price;
  std::vector<Part> parts;
  std::map<std::string, int64_t> sizes;
  double low = 0, high = 0;
  template <class Self, class V>
  static void json_fields(Self& self, V& v) {
    v("name", self.name);
    v("colour", self.colour);
    v("price", self.price);
    v.lenient("parts", self.parts);
    v.optional("sizes", self.sizes);
    v.optional("interval", std::tie(self.low, self.high), std::tuple(0.0, 0.0));
    v.note("count", [&] { return self.parts.size(); });
  }
};

std::string error_of(const Json& json) {
  try {
    from_json<Whole>(json, "a whole", "w.json:3");
  } catch (const Error& e) {
    EXPECT_EQ(e.where(), "w.json:3");
    return e.message();
  }
  return "no error";
}

TEST(JsonFields, ThereAndBack) {
  Whole whole{"w", Colour::kBlue, 1.5, {{1}, {2}}, {{"N", 3}}, 0.5, 1};
  Json json = json_of(whole);
  EXPECT_EQ(json, Json::parse(R"({"name": "w", "colour": "blue", "price": 1.5, "parts": [{"weight": 1}, {"weight": 2}],
                                  "sizes": {"N": 3}, "interval": [0.5, 1.0], "count": 2})"));
  EXPECT_EQ(json_of(from_json<Whole>(json, "a whole", "")), json);
  EXPECT_EQ(json_of(Whole{}), Json::parse(R"({"name": "", "colour": "red", "price": null, "parts": [], "count": 0})"));
  EXPECT_EQ(json_of(from_json<Whole>({{"name", "w"}, {"colour", "red"}, {"other", 1}}, "a whole", "")).at("count"), 0);
}

TEST(JsonFields, ErrorsNameTheField) {
  const std::pair<Json, const char*> spoilt[] = {
      {Json::array(), "a whole must be a JSON object"},
      {{{"colour", "red"}}, "has no field \"name\""},
      {{{"name", nullptr}}, "has no field \"name\""},
      {{{"name", 3}}, "\"name\" that is no text"},
      {{{"name", "w"}, {"colour", "green"}}, "unknown colour \"green\""},
      {{{"price", "1"}}, "\"price\" that is no number"},
      {{{"parts", 1}}, "\"parts\" that is no list"},
      {{{"parts", {{{"weight", 1.5}}}}}, "\"weight\" that is no whole number"},
      {{{"parts", {{{"weight", int64_t{1} << 32}}}}}, "too large"},
      {{{"parts", {{{"weight", -1}}}}}, "less than nothing"},
      {{{"parts", {{{"weight", 1}, {"height", 1}}}}}, "\"height\" which is not known"},
      {{{"sizes", {{"N", "3"}}}}, "\"sizes.N\" that is no whole number"},
      {{{"interval", {1}}}, "\"interval\" that is no pair"},
  };
  for (const auto& [wrong, said] : spoilt) {
    Json json = wrong;
    if (json.is_object() && !json.contains("name") && !json.contains("colour")) {
      json.update({{"name", "w"}, {"colour", "red"}});
    }
    EXPECT_THAT(error_of(json), testing::HasSubstr(said)) << json;
  }
}

}  // namespace
}  // namespace tritonrl::json_fields_test
