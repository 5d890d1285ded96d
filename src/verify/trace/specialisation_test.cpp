// SPDX-License-Identifier: Apache-2.0
// Specialisation: what is compiled is what is launched, for arguments of every kind, or the trace is refused.
#include "verify/trace/specialisation.h"

#include <gtest/gtest.h>

#include <functional>

#include "support/trace_writer.h"

namespace tritonrl::specialisation_test {
namespace {

using Kind = TraceArg::Kind;

// launch(x, y, n = 8), and what the recorder says of it; more arguments by their name, type and constant.
TraceFile launched() {
  TraceFile file = with_specs(file_of({small_trace()}));
  file.specs[0].json = Json::parse(R"({"kernel": 0, "key": "k", "arch": 90,
    "signature": {"p0": "*fp32", "p1": "*fp32", "n": "i32"}, "constants": {},
    "attrs": {"p0": [["tt.divisibility", 16]], "p1": [["tt.divisibility", 16]]},
    "options": {"num_warps": 4, "num_stages": 3, "num_ctas": 1, "maxnreg": null}})");
  return file;
}

Json& spec(TraceFile& file) { return file.specs[0].json; }
TraceChoice& choice(TraceFile& file) { return file.cases[0].tape[1].choices[0]; }

void add(TraceFile& file, const std::string& name, const char* type, const TraceArg& arg, const char* constant = "") {
  choice(file).args.emplace_back(name, arg);
  spec(file)["signature"][name] = Json::parse(type);
  if (*constant) spec(file)["constants"][name] = Json::parse(constant);
}

std::string why(const TraceFile& file) {
  try {
    check_specialisations(file, 90);
  } catch (const Tainted& tainted) {
    return tainted.why;
  }
  return "";
}

TEST(Specialisation, HonestLaunchesPass) {
  TraceFile file = launched();
  EXPECT_EQ(why(file), "");
  add(file, "none", R"("constexpr")", {}, R"({"n": null})");
  add(file, "null", R"("*fp16")", {});
  add(file, "one", R"("constexpr")", int_arg(1), R"({"i": 1})");
  add(file, "large", R"("u64")", int_arg(-1));
  add(file, "large_constant", R"("constexpr")", int_arg(-1), R"({"i": 18446744073709551615})");
  add(file, "small", R"("i8")", int_arg(-128));
  add(file, "flag", R"("u1")", trace_arg(Kind::kBool, 1));
  add(file, "real", R"("fp32")", float_arg(0.5));
  add(file, "whole", R"("fp64")", int_arg(3));
  add(file, "real_constant", R"("constexpr")", float_arg(0.1), R"({"f": 0.1})");
  add(file, "infinite", R"("constexpr")", float_arg(-INFINITY), R"({"f": "-inf"})");
  add(file, "undefined", R"("constexpr")", float_arg(NAN), R"({"f": "nan"})");
  add(file, "zero", R"("constexpr")", float_arg(-0.0), R"({"f": -0.0})");
  add(file, "text", R"("constexpr")", trace_arg(Kind::kText, 0, "tf32"), R"({"s": "tf32"})");
  add(file, "dtype", R"("constexpr")", trace_arg(Kind::kDtype, 3), R"({"dtype": "bfloat16"})");
  add(file, "type", R"("constexpr")", trace_arg(Kind::kTritonDtype, 0, "int8"), R"({"dtype": "tl.int8"})");
  add(file, "helper", R"("constexpr")", trace_arg(Kind::kFunction, 0), R"({"s": "jit:0"})");
  add(file, "sizes", R"("constexpr")", trace_arg(Kind::kList, 0, "", {int_arg(2), int_arg(3)}),
      R"({"l": [{"i": 2}, {"i": 3}]})");
  add(file, "address", R"("i64")", tensor_arg(0));
  add(file, "constant_data", R"("*kfp32")", tensor_arg(0));
  add(file, "tuple", R"(["*fp32", ["i32", "constexpr"]])",
      trace_arg(Kind::kList, 0, "", {tensor_arg(1), trace_arg(Kind::kList, 0, "", {int_arg(7), int_arg(1)})}));
  spec(file)["constants"]["tuple.1.1"] = {{"i", 1}};
  auto sizes = [](int64_t n) { return trace_arg(Kind::kList, 0, "", {int_arg(n), int_arg(8)}); };
  add(file, "descriptor", R"("tensordesc<fp32[2, 8]>")",
      trace_arg(Kind::kDescriptor, 0, "", {sizes(4), sizes(8), sizes(2), int_arg(0)}));
  EXPECT_EQ(why(file), "");
}

TEST(Specialisation, WhatIsCompiledOtherwiseIsRefused) {
  struct Forged {
    const char* what;
    std::function<void(TraceFile&)> change;
    const char* message;
  };
  auto two = [](const char* type, const TraceArg& arg, const char* constant = "") {
    return [=](TraceFile& f) { add(f, "q", type, arg, constant); };
  };
  auto in_spec = [](const char* pointer, Json value) {
    return [=](TraceFile& f) { spec(f)[Json::json_pointer(pointer)] = value; };
  };
  const Forged list[] = {
      {"another constant", two(R"("constexpr")", int_arg(16), R"({"i": 32})"), "constants"},
      {"a number for a flag", two(R"("constexpr")", trace_arg(Kind::kBool, 1), R"({"i": 1})"), "constants"},
      {"a flag for a number", two(R"("constexpr")", int_arg(1), R"({"b": true})"), "constants"},
      {"another zero", two(R"("constexpr")", float_arg(0.0), R"({"f": -0.0})"), "constants"},
      {"a number for infinity", two(R"("constexpr")", float_arg(INFINITY), R"({"f": 1e308})"), "constants"},
      {"another helper", two(R"("constexpr")", trace_arg(Kind::kFunction, 0), R"({"s": "jit:1"})"), "constants"},
      {"a longer tuple", two(R"("constexpr")", trace_arg(Kind::kList), R"({"l": [{"i": 1}]})"), "constants"},
      {"a constant that is missing", two(R"("constexpr")", int_arg(16)), "constants"},
      {"a constant for what is none", in_spec("/constants/n", {{"i", 7}}), "constants"},
      {"a constant of nothing", in_spec("/constants/m", {{"i", 7}}), "constants"},
      {"half precision for full", in_spec("/signature/p0", "*fp16"), "types"},
      {"numbers for a tensor", in_spec("/signature/p0", "i32"), "types"},
      {"a tensor for a number", in_spec("/signature/n", "*fp32"), "types"},
      {"a type that does not hold it", two(R"("i8")", int_arg(128)), "types"},
      {"an unsigned type for less than nothing", two(R"("u32")", int_arg(-1)), "types"},
      {"an integer for a real number", two(R"("i32")", float_arg(0.5)), "types"},
      {"a type that nobody knows", two(R"("i33")", int_arg(5)), "types"},
      {"no type", two(R"("")", int_arg(5)), "types"},
      {"a type that is none", in_spec("/signature/n", 5), "malformed"},
      {"another block", two(R"("tensordesc<fp32[2, 80]>")",
                            trace_arg(Kind::kDescriptor, 0, "",
                                      {trace_arg(Kind::kList, 0, "", {int_arg(4), int_arg(8)}),
                                       trace_arg(Kind::kList, 0, "", {int_arg(8), int_arg(1)}),
                                       trace_arg(Kind::kList, 0, "", {int_arg(2), int_arg(8)}), int_arg(0)})),
       "types"},
      {"a shorter tuple", two(R"(["i32"])", trace_arg(Kind::kList, 0, "", {int_arg(2), int_arg(3)})), "types"},
      {"a number that is not divisible", in_spec("/attrs/n", Json::parse(R"([["tt.divisibility", 16]])")),
       "attributes"},
      {"a view that is not aligned", [](TraceFile& f) { f.cases[0].values[0].offset = 3; }, "attributes"},
      {"another attribute", in_spec("/attrs/p0", Json::parse(R"([["tt.pointer_range", 32]])")), "attributes"},
      {"an attribute of nothing", in_spec("/attrs/m", Json::parse(R"([["tt.divisibility", 16]])")), "attributes"},
      {"one warp", in_spec("/options/num_warps", 1), "num_warps"},
      {"no number of warps", [](TraceFile& f) { spec(f)["options"].erase("num_warps"); }, "num_warps"},
      {"other stages", in_spec("/options/num_stages", 1), "num_stages"},
      {"another architecture", in_spec("/arch", 80), "architecture"},
      {"a parameter too many", in_spec("/signature/m", "i32"), "parameters"},
      {"a parameter of another name",
       [](TraceFile& f) {
         spec(f)["signature"].erase("n");
         spec(f)["signature"]["m"] = "i32";
       },
       "parameters"},
      {"no signature", [](TraceFile& f) { spec(f).erase("signature"); }, "malformed"},
  };
  for (const Forged& one : list) {
    TraceFile file = launched();
    one.change(file);
    EXPECT_NE(why(file).find(one.message), std::string::npos) << one.what << ": \"" << why(file) << "\"";
  }
}

TEST(Specialisation, EveryChoiceCounts) {
  TraceFile file = launched();
  std::vector<TraceChoice>& choices = file.cases[0].tape[1].choices;
  choices.push_back(choices[0]);
  EXPECT_EQ(why(file), "");
  choices[1].num_warps = 8;
  EXPECT_NE(why(file), "");
}

TEST(Specialisation, WhatTheCompilerMadeIsWhatWasAskedFor) {
  TraceFile file = launched();
  TraceCubin cubin;
  cubin.num_warps = 4;
  auto refused = [&] {
    try {
      check_compiled(spec(file), cubin);
    } catch (const Tainted&) {
      return true;
    }
    return false;
  };
  EXPECT_FALSE(refused());
  cubin.num_warps = 8;  // Specialised warps.
  EXPECT_FALSE(refused());
  cubin.num_warps = 2;
  EXPECT_TRUE(refused());
  cubin.num_warps = 4;
  cubin.num_ctas = 2;
  EXPECT_TRUE(refused());
}

}  // namespace
}  // namespace tritonrl::specialisation_test
