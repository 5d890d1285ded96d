// SPDX-License-Identifier: Apache-2.0
// Traces: honest ones parse, every inconsistency is refused, damage of any kind never crashes and never hangs.
#include "verify/trace/trace.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "base/process/build_paths.h"
#include "base/rng.h"
#include "support/trace_writer.h"

namespace tritonrl::trace_test {
namespace {

using Kind = TraceArg::Kind;
using NestKind = Nest<int64_t>::Kind;

std::string why(const TraceFile& file) { return parse_written(file).why; }
std::string why(const CaseTrace& trace) { return why(file_of({trace})); }
std::string why(const std::string& bytes) { return parse_trace_file(std::make_shared<const std::string>(bytes)).why; }

TEST(CaseTrace, ParsesAnHonestOne) {
  auto file = parse_written(file_of({small_trace("full"), small_trace("tiny", {2})}));
  ASSERT_TRUE(file) << file.why;
  const CaseTrace* trace = file.value->find("full");
  ASSERT_TRUE(trace);
  EXPECT_EQ(file.value->find("none"), nullptr);
  EXPECT_EQ(trace->launches(), 1);
  EXPECT_EQ(trace->inputs[0].value, 0);
  EXPECT_EQ(trace->values[1].end_byte(), 128);
  EXPECT_EQ(trace->tape[0].outs, std::vector<int64_t>{1});
  EXPECT_EQ(trace->tape[1].reads, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(file.value->cubins[0].image, "\177ELF");
}

TEST(CaseTrace, ReadsAllThatIsWritten) {
  std::string bytes = write_trace_file(sample_trace_file());
  auto file = parse_trace_file(std::make_shared<const std::string>(bytes));
  ASSERT_TRUE(file) << file.why;
  EXPECT_EQ(write_trace_file(*file.value), bytes);
  const CaseTrace& full = file.value->cases[0];
  EXPECT_EQ(full.tape[1].reads, (std::vector<int64_t>{0, 1, 2, 0, 1, 2}));  // Two choices of three tensors.
  EXPECT_EQ(full.tape[2].outs, std::vector<int64_t>{4});
  EXPECT_EQ(full.inputs[1].literal.dump(), R"([1,{"tuple":[2.5,null,"three"]}])");
  EXPECT_EQ(full.parameters[1].initial, "8 bytes.");
  EXPECT_EQ(full.seconds.at("total"), 3.75);
  EXPECT_EQ(file.value->cases[1].notes["constants"]["N"], 8);
}

// The Python side reads what this side writes, and writes the same bytes.
TEST(CaseTrace, PythonAndThisAgree) {
  auto folder = std::filesystem::temp_directory_path() / cat("plan_test_", ::getpid());
  std::filesystem::create_directories(folder);
  std::string bytes = write_trace_file(sample_trace_file()), in = folder / "in", out = folder / "out";
  write_file(in, bytes);
  std::string script =
      cat("import sys; sys.path.insert(0, '", source_dir(), "/worker'); ",
          "from trace_format import pack; from trace_reader import unpack; data = open(sys.argv[1], 'rb').read(); ",
          "open(sys.argv[2], 'wb').write(pack(unpack(data), data))");
  std::string command = cat(python_program(), " -B -I -c \"", script, "\" ", in, " ", out);
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(read_file(out), bytes);
  std::filesystem::remove_all(folder);
}

struct Damage {
  const char* what;
  std::function<void(TraceFile&)> damage;
  const char* message;
};

void expect_refused(const std::vector<Damage>& list) {
  for (const Damage& one : list) {
    TraceFile file = sample_trace_file();
    ASSERT_EQ(why(file), "");
    one.damage(file);
    EXPECT_NE(why(file).find(one.message), std::string::npos) << one.what << ": \"" << why(file) << "\"";
    EXPECT_NE(why(file), "") << one.what;
  }
}

TEST(CaseTrace, RefusesKernelsAndCubinsThatCannotBe) {
  using File = TraceFile;
  expect_refused({
      {"helper out of range", [](File& f) { f.kernels[1].globals[0].kernel = 7; }, "range"},
      {"kernel that needs itself", [](File& f) { f.kernels[1].globals[0].kernel = 1; }, "range"},
      {"first kernel with a helper", [](File& f) { std::swap(f.kernels[0], f.kernels[1]); }, "no kernel"},
      {"tensor as a global", [](File& f) { f.kernels[1].globals[1].value = tensor_arg(0); }, "constant"},
      {"unknown global", [](File& f) { f.kernels[1].globals[5].kind = static_cast<TraceGlobal::Kind>(6); }, "kind"},
      {"long name", [](File& f) { f.kernels[0].name = std::string(1025, 'k'); }, "longer"},
      {"long source", [](File& f) { f.kernels[0].source = std::string((1 << 20) + 1, ' '); }, "longer"},
      {"source that is no text", [](File& f) { f.kernels[0].source = "\xff\xfe"; }, "UTF-8"},
      {"overlong UTF-8", [](File& f) { f.kernels[0].name = "\xc0\xaf"; }, "UTF-8"},
      {"surrogate", [](File& f) { f.kernels[0].name = "\xed\xa0\x80"; }, "UTF-8"},
      {"many kernels", [](File& f) { f.kernels.resize(257); }, "more than 256"},
      {"many globals", [](File& f) { f.kernels[0].globals.resize(1025); }, "more than 1024"},
      {"cubin of no kernel", [](File& f) { f.cubins[0].kernel = 2; }, "range"},
      {"cubin that is text", [](File& f) { f.cubins[0].image = "#!/bin/sh"; }, "none"},
      {"cubin of nothing", [](File& f) { f.cubins[0].image = ""; }, "none"},
      {"cubins without kernels", [](File& f) { f.kernels.clear(); }, "no kernel"},
      {"no warps", [](File& f) { f.cubins[0].num_warps = 0; }, "range"},
      {"many warps", [](File& f) { f.cubins[0].num_warps = 65; }, "range"},
      {"cluster of nothing", [](File& f) { f.cubins[0].cluster[2] = 0; }, "range"},
      {"negative scratch", [](File& f) { f.cubins[0].global_scratch = -1; }, "range"},
      {"huge shared memory", [](File& f) { f.cubins[0].shared = int64_t{1} << 31; }, "range"},
      {"function of no kernel", [](File& f) { f.cubins[0].constants[1].second.number = 9; }, "range"},
      {"constant twice", [](File& f) { f.cubins[0].constants[1].first = "BLOCK"; }, "one name"},
  });
}

TEST(CaseTrace, RefusesCasesThatCannotBe) {
  using File = TraceFile;
  expect_refused({
      {"two cases of one name", [](File& f) { f.cases[1].name = f.cases[0].name; }, "one name"},
      {"many cases", [](File& f) { f.cases.resize(65); }, "more than 64"},
      {"huge size", [](File& f) { f.cases[0].values[2] = trace_value(2, {(int64_t{1} << 40) + 1}); }, "range"},
      {"huge number of elements",
       [](File& f) {
         f.cases[0].values[2].shape = {1 << 30, 1 << 30};
         f.cases[0].values[2].stride = {0, 0};
       },
       "too many"},
      {"sizes whose product overflows",
       [](File& f) {
         f.cases[0].values[2].shape.assign(16, int64_t{1} << 40);
         f.cases[0].values[2].stride.assign(16, 1);
       },
       "too many"},
      {"span that overflows",
       [](File& f) {
         f.cases[0].values[2].shape = {2};
         f.cases[0].values[2].stride = {int64_t{1} << 40};
       },
       "too large"},
      {"negative size", [](File& f) { f.cases[0].values[2].shape[0] = -4; }, "range"},
      {"negative stride", [](File& f) { f.cases[0].values[2].stride[0] = -1; }, "range"},
      {"negative offset", [](File& f) { f.cases[0].values[2].offset = -1; }, "range"},
      {"many dimensions", [](File& f) { f.cases[0].values[2] = trace_value(2, std::vector<int64_t>(17, 1)); },
       "dimensions"},
      {"unknown dtype", [](File& f) { f.cases[0].values[2].dtype = static_cast<Dtype>(10); }, "dtype"},
      {"storage out of range", [](File& f) { f.cases[0].values[2].storage = 5; }, "range"},
      {"input of no value", [](File& f) { f.cases[0].inputs[0].value = 9; }, "range"},
      {"many inputs", [](File& f) { f.cases[0].inputs.resize(1025); }, "more than 1024"},
      {"deep input",
       [](File& f) {
         Json& at = f.cases[0].inputs[1].literal;
         for (int i = 0; i < 70; ++i) at = Json::array({at});
       },
       "deeply"},
      {"parameter of no value", [](File& f) { f.cases[0].parameters[0].value = 9; }, "range"},
      {"two parameters of one name", [](File& f) { f.cases[0].parameters[1].name = "linear.weight"; }, "one name"},
      {"parameter with few bytes", [](File& f) { f.cases[0].parameters[1].initial = "7 bytes"; }, "disagree"},
      {"output of no value", [](File& f) { f.cases[0].outputs = leaf(9); }, "range"},
      {"deep outputs",
       [](File& f) {
         for (int i = 0; i < 20; ++i) f.cases[0].outputs = group(NestKind::kList, {f.cases[0].outputs});
       },
       "deeply"},
      {"structured value among outputs",
       [](File& f) { f.cases[0].outputs.children[1].children[1].value = Json::array(); }, "malformed"},
      {"notes that are a list", [](File& f) { f.cases[0].notes = Json::array(); }, "notes"},
      {"more sections than steps", [](File& f) { f.cases[1].init_steps = UINT32_MAX; }, "more steps"},
      {"sections that overflow",
       [](File& f) {
         f.cases[1].init_steps = 4;
         f.cases[1].input_steps = UINT32_MAX;
       },
       "more steps"},
      {"time that is none", [](File& f) { f.cases[0].seconds["init"] = NAN; }, "time"},
      {"negative time", [](File& f) { f.cases[0].seconds["init"] = -1; }, "time"},
  });
}

TEST(CaseTrace, RefusesStepsThatCannotBe) {
  using File = TraceFile;
  auto args = [](File& f) -> std::vector<TraceArg>& { return f.cases[0].tape[2].args; };
  auto choice = [](File& f, size_t i = 0) -> TraceChoice& { return f.cases[0].tape[1].choices[i]; };
  expect_refused({
      {"unknown kind of argument", [&](File& f) { args(f)[0].kind = static_cast<Kind>(15); }, "kind"},
      {"tensor of no value", [&](File& f) { args(f)[0].number = 5; }, "range"},
      {"function of no kernel", [&](File& f) { args(f)[0] = trace_arg(Kind::kFunction, 2); }, "range"},
      {"unknown device", [&](File& f) { args(f)[0] = trace_arg(Kind::kDevice, 2); }, "device"},
      {"unknown dtype", [&](File& f) { args(f)[0] = trace_arg(Kind::kDtype, 10); }, "dtype"},
      {"boolean of three", [&](File& f) { args(f)[0] = trace_arg(Kind::kBool, 3); }, "flag"},
      {"long text", [&](File& f) { args(f)[0] = trace_arg(Kind::kText, 0, std::string(4097, 'x')); }, "longer"},
      {"deep argument",
       [&](File& f) {
         for (int i = 0; i < 5; ++i) args(f)[0] = trace_arg(Kind::kList, 0, "", {args(f)[0]});
       },
       "deeply"},
      {"long list", [&](File& f) { args(f)[0] = trace_arg(Kind::kList, 0, "", std::vector<TraceArg>(1025)); },
       "more than 1024"},
      {"many arguments", [&](File& f) { args(f).resize(1025); }, "more than 1024"},
      {"long operator", [](File& f) { f.cases[0].tape[2].op = std::string(257, 'a'); }, "longer"},
      {"an attribute for an overload", [](File& f) { f.cases[0].tape[2].op = "aten.view.__setattr__"; }, "no operator"},
      {"an overload with an underscore", [](File& f) { f.cases[0].tape[2].op = "aten.view._dir"; }, "no operator"},
      {"no overload", [](File& f) { f.cases[0].tape[2].op = "aten.view"; }, "no operator"},
      {"another namespace", [](File& f) { f.cases[0].tape[2].op = "prims.view.default"; }, "no operator"},
      {"a name that is none", [](File& f) { f.cases[0].tape[2].op = "aten.a-b.default"; }, "no operator"},
      {"a file read", [](File& f) { f.cases[0].tape[2].op = "aten.from_file.default"; }, "no operator"},
      {"unknown layout", [&](File& f) { args(f)[0] = trace_arg(Kind::kLayout, 0, "load"); }, "unknown layout"},
      {"unknown memory format", [&](File& f) { args(f)[0] = trace_arg(Kind::kMemoryFormat, 0, "matmul"); },
       "unknown memory format"},
      {"unknown Triton dtype", [&](File& f) { args(f)[0] = trace_arg(Kind::kTritonDtype, 0, "fp32"); },
       "unknown Triton dtype"},
      {"keyword twice", [](File& f) { f.cases[0].tape[2].kwargs[1].first = "dtype"; }, "one name"},
      {"launch of no kernel", [](File& f) { f.cases[0].tape[1].kernel = 2; }, "range"},
      {"negative kernel", [](File& f) { f.cases[0].tape[1].kernel = -1; }, "range"},
      {"launch without a choice", [](File& f) { f.cases[0].tape[1].choices.clear(); }, "without"},
      {"many choices", [&](File& f) { f.cases[0].tape[1].choices.resize(17, choice(f)); }, "more than 16"},
      {"choice with other arguments", [&](File& f) { choice(f, 1).args.pop_back(); }, "other arguments"},
      {"choice with other names", [&](File& f) { choice(f, 1).args[0].first = "q"; }, "other arguments"},
      {"no such cubin", [&](File& f) { choice(f).cubin = 1; }, "no cubin"},
      {"cubin of another kernel", [](File& f) { f.cases[0].tape[1].kernel = 1; }, "another kernel"},
      {"grid too wide", [&](File& f) { choice(f).grid[0] = int64_t{1} << 31; }, "range"},
      {"grid too high", [&](File& f) { choice(f).grid[1] = 65536; }, "range"},
      {"grid too deep", [&](File& f) { choice(f).grid[2] = 65536; }, "range"},
      {"descriptor of no value", [&](File& f) { choice(f).args[3].second.number = 5; }, "range"},
      {"descriptor with other strides", [&](File& f) { choice(f).args[3].second.list[1].list.pop_back(); }, "disagree"},
      {"descriptor of many dimensions", [&](File& f) { choice(f).args[3].second.list[0].list.resize(17); },
       "more than 16"},
      {"unknown padding", [&](File& f) { choice(f).args[3].second.list[3].number = 2; }, "padding"},
      {"too many steps", [](File& f) { f.cases[0].tape.resize(20001, f.cases[0].tape[0]); }, "more than 20000"},
      {"too much in all",
       [&](File& f) {
         TraceStep step = call_step("aten.cat.default", {}, 0);
         step.args = {trace_arg(Kind::kList, 0, "", std::vector<TraceArg>(1024))};
         f.cases[0].tape.resize(2000, step);
       },
       "too many parts"},
  });
}

TEST(CaseTrace, RefusesValuesThatCannotBe) {
  auto with = [](std::vector<TraceValue> more, std::vector<TraceStep> tape) {
    CaseTrace trace = small_trace();
    trace.values.insert(trace.values.end(), more.begin(), more.end());
    trace.tape.insert(trace.tape.end(), tape.begin(), tape.end());
    return why(trace);
  };
  EXPECT_EQ(with({trace_value(1, {32})}, {call_step("aten.view.default", {1}, 2)}), "");
  EXPECT_EQ(with({trace_value(1, {8}, 24)}, {call_step("aten.select.int", {1}, 2)}), "");
  EXPECT_EQ(with({}, {call_step("aten.fill_.Scalar", {1}, 1)}), "");
  EXPECT_NE(with({trace_value(1, {4, 9})}, {call_step("aten.view.default", {1}, 2)}).find("beyond"), std::string::npos);
  EXPECT_NE(with({trace_value(1, {8}, 25)}, {call_step("aten.select.int", {1}, 2)}).find("beyond"), std::string::npos);
  EXPECT_NE(with({trace_value(0)}, {call_step("aten.view.default", {1}, 2)}).find("not given"), std::string::npos);
  EXPECT_NE(with({trace_value(2)}, {call_step("aten.relu.default", {2}, 1)}).find("before"), std::string::npos);
  EXPECT_NE(with({trace_value(2)}, {launch_step({2})}).find("before"), std::string::npos);
  CaseTrace trace = small_trace();
  std::swap(trace.tape[0], trace.tape[1]);
  EXPECT_NE(why(trace).find("before"), std::string::npos);
  trace.tape.clear();
  EXPECT_NE(why(trace).find("before"), std::string::npos);  // The output.
  // A wider dtype on the same memory.
  TraceValue wide = trace_value(1, {32});
  wide.dtype = Dtype::kFloat64;
  EXPECT_NE(with({wide}, {call_step("aten.view.dtype", {1}, 2)}).find("beyond"), std::string::npos);
}

// x and w are given, or made by the sections before forward().
TEST(CaseTrace, Sections) {
  CaseTrace trace = small_trace();
  trace.values.push_back(trace_value(2));
  trace.parameters.resize(1);
  trace.parameters[0].name = "w";
  trace.parameters[0].value = 2;
  EXPECT_EQ(why(trace), "");
  auto sections = [&](std::vector<TraceStep> init, std::vector<TraceStep> inputs) {
    CaseTrace out = trace;
    out.init_steps = init.size();
    out.input_steps = inputs.size();
    inputs.insert(inputs.end(), trace.tape.begin(), trace.tape.end());
    init.insert(init.end(), inputs.begin(), inputs.end());
    out.tape = std::move(init);
    return why(out);
  };
  TraceStep make_w = call_step("aten.empty.memory_format", {}, 2), fill_w = call_step("aten.normal_.default", {2}, 2);
  TraceStep make_x = call_step("aten.randn.default", {}, 0), x_from_w = call_step("aten.relu.default", {2}, 0);
  EXPECT_EQ(sections({make_w, fill_w}, {make_x}), "");
  EXPECT_EQ(sections({make_w}, {x_from_w}), "");
  EXPECT_EQ(sections({fill_w}, {}), "");  // w is given, and changed.
  EXPECT_NE(sections({fill_w, make_w}, {}).find("before"), std::string::npos);
  EXPECT_NE(sections({}, {make_w, make_x}).find("does not make"), std::string::npos);  // Too late for a parameter.
  // Work on inputs does not belong before forward().
  EXPECT_NE(sections({call_step("aten.relu.default", {0}, 2)}, {}).find("before"), std::string::npos);
  EXPECT_NE(sections({make_w}, {call_step("aten.mul_.Tensor", {0}, 0)}).find("before"), std::string::npos);
}

TEST(CaseTrace, LargeUnsignedNumbersKeepTheirBits) {
  CaseTrace trace = small_trace();
  trace.tape[1].choices[0].args.back().second = int_arg(-2);
  std::string bytes = write_trace_file(file_of({trace}));
  std::string signed_form("\2\xfe\xff\xff\xff\xff\xff\xff\xff", 9);
  size_t at = bytes.find(signed_form);
  ASSERT_NE(at, std::string::npos);
  bytes[at] = 14;
  auto file = parse_trace_file(std::make_shared<const std::string>(bytes));
  ASSERT_TRUE(file) << file.why;
  EXPECT_EQ(file.value->cases[0].tape[1].choices[0].args.back().second.number, -2);
  bytes[at + 8] = 0x7f;
  EXPECT_NE(why(bytes).find("not large"), std::string::npos);
}

TEST(CaseTrace, RefusesWhatIsNoTrace) {
  std::string bytes = write_trace_file(sample_trace_file());
  EXPECT_NE(why(std::string()), "");
  EXPECT_NE(why("{\"trace_version\": 0}").find("no trace"), std::string::npos);
  EXPECT_NE(why(bytes + '\0').find("after its end"), std::string::npos);
  EXPECT_NE(why(bytes + bytes).find("after its end"), std::string::npos);
  std::string other = bytes;
  other[4] = 3;
  EXPECT_NE(why(other).find("version"), std::string::npos);
  EXPECT_NE(why(std::string(bytes).replace(0, 4, "TRPM")).find("no trace"), std::string::npos);
  EXPECT_NE(why(std::string((256 << 20) + 1, '\0')).find("too large"), std::string::npos);
}

TEST(CaseTrace, RefusesEveryTruncation) {
  std::string bytes = write_trace_file(sample_trace_file());
  for (size_t size = 0; size < bytes.size(); ++size) EXPECT_NE(why(bytes.substr(0, size)), "") << size;
}

// Every field in turn says that there is endlessly much of it.
TEST(CaseTrace, CountsThatLie) {
  std::string bytes = write_trace_file(sample_trace_file());
  for (size_t at = 0; at + 8 <= bytes.size(); ++at) {
    for (size_t width : {4, 8}) {
      for (const char* fill : {"\xff\xff\xff\xff\xff\xff\xff\xff", "\xff\xff\xff\xff\xff\xff\xff\x7f",
                               "\0\0\0\x40\0\0\0\x40", "\0\0\1\0\0\0\0\0"}) {
        std::string evil = bytes;
        evil.replace(at, width, fill, width);
        EXPECT_EQ(rewrite_fault(evil), "") << at;
      }
    }
  }
}

TEST(CaseTrace, SurvivesRandomDamage) {
  const std::string bytes = write_trace_file(sample_trace_file());
  Rng rng(7);
  int parsed = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string evil = bytes;
    for (int64_t edits = 1 + rng.below(4); edits > 0; --edits) {
      auto at = static_cast<size_t>(rng.below(static_cast<int64_t>(evil.size())));
      auto size = static_cast<size_t>(rng.below(16));
      switch (rng.below(5)) {
        case 0:
          evil[at] = static_cast<char>(rng.below(256));
          break;
        case 1:
          evil[at] = static_cast<char>(rng.below(6));
          break;
        case 2:
          evil.erase(at, size);
          break;
        case 3:
          evil.insert(at, bytes, static_cast<size_t>(rng.below(static_cast<int64_t>(bytes.size()))), size);
          break;
        case 4:
          evil.replace(at, size, size, '\xff');
          break;
      }
      if (evil.empty()) evil = "T";
    }
    parsed += parse_trace_file(std::make_shared<const std::string>(evil)) ? 1 : 0;
    ASSERT_EQ(rewrite_fault(evil), "") << round;
  }
  EXPECT_GT(parsed, 100);
  EXPECT_LT(parsed, 19000);
}

}  // namespace
}  // namespace tritonrl::trace_test
