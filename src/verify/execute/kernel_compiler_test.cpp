// SPDX-License-Identifier: Apache-2.0
#include "verify/execute/kernel_compiler.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/files/secure_hash.h"
#include "support/fake_worker.h"
#include "support/made_up_finding.h"
#include "support/trace_writer.h"

namespace tritonrl::kernel_compiler_test {
namespace {

std::shared_ptr<const std::string> shared(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

// As it arrives.
TraceFile arrived(const TraceFile& file) {
  auto parsed = parse_trace_file(shared(write_trace_file(file)));
  EXPECT_TRUE(parsed) << parsed.why;
  return std::move(*parsed.value);
}

// One launch with `choices` configurations; every spec has constants of its own.
TraceFile tuned(size_t choices) {
  TraceFile file = with_specs(file_of({small_trace()}));
  TraceStep& launch = file.cases[0].tape[1];
  TraceSpec spec = file.specs[0];
  TraceChoice choice = launch.choices[0];
  file.specs.clear();
  launch.choices.clear();
  for (size_t i = 0; i < choices; ++i) {
    spec.json["constants"]["BLOCK"] = {{"i", 16 << i}};
    file.specs.push_back(spec);
    choice.spec = static_cast<int64_t>(i);
    choice.grid[0] = static_cast<int64_t>(i + 1);
    launch.choices.push_back(choice);
  }
  return arrived(file);
}

std::vector<const CaseTrace*> cases(const TraceFile& file) {
  std::vector<const CaseTrace*> out;
  for (const CaseTrace& trace : file.cases) out.push_back(&trace);
  return out;
}

// A compiler whose cubins tell the BLOCK they are of; fails for blocks in `bad`.
struct Worker {
  std::set<int64_t> bad;
  std::atomic<int> jobs{0};
  Finding operator()(const Job& job, Blob* blob) {
    ++jobs;
    int64_t block = job.args["spec"]["constants"]["BLOCK"]["i"].get<int64_t>();
    if (bad.count(block)) return {Rule::kTritonCompile, cat("line ", job.args["kernels"][0]["line"].dump())};
    TraceFile file = file_of({});
    std::string image = cat("\177ELF", block);
    file.cubins[0].image = image;
    blob->bytes = write_trace_file(file);
    blob->tensors_at = 0;
    return {};
  }
};

struct Tried {
  Finding ended;
  KernelSet kernels;
};
Tried compile(KernelCompiler& compiler, const TraceFile& file, Worker& worker) {
  Tried out;
  OwnTime own;
  auto run = [&](const Job& job, Blob* blob, const std::string&) { return worker(job, blob); };
  out.ended = compiler.compile(file, cases(file), 30, run, &own, &out.kernels);
  return out;
}

TEST(KernelCompiler, CompilesEachSpecOnceInARun) {
  KernelCompiler compiler;
  Worker worker;
  TraceFile file = tuned(3);
  Tried first = compile(compiler, file, worker);
  ASSERT_EQ(first.ended.outcome(), Outcome::kPass) << human_text(first.ended);
  EXPECT_EQ(worker.jobs, 3);
  TraceFile other = tuned(4);
  other.kernels[0].line += 10;  // The same text elsewhere in another file.
  ASSERT_EQ(compile(compiler, other, worker).ended.outcome(), Outcome::kPass);
  EXPECT_EQ(worker.jobs, 4);
  EXPECT_EQ(compiler.hits(), 3);
  other.kernels[0].source = "def k(): return";
  ASSERT_EQ(compile(compiler, other, worker).ended.outcome(), Outcome::kPass);
  EXPECT_EQ(worker.jobs, 8);
}

// Who came first must not matter to whether a candidate is late.
TEST(KernelCompiler, ChargesForKnownKernelsToo) {
  KernelCompiler compiler;
  Worker worker;
  TraceFile file = tuned(3);
  for (int time = 0; time < 2; ++time) {
    OwnTime own(4);
    auto run = [&](const Job& job, Blob* blob, const std::string& kernel) {
      own.add(job.args["spec"]["constants"]["BLOCK"]["i"] == 32 ? 3 : 1, kernel);
      return worker(job, blob);
    };
    KernelSet kernels;
    EXPECT_TRUE(compiler.compile(file, cases(file), 30, run, &own, &kernels).passed());
    EXPECT_EQ(own.seconds(), 3) << "the longest of 1, 3 and 1, side by side";
    EXPECT_TRUE(compiler.compile(file, cases(file), 30, run, &own, &kernels).passed());
    EXPECT_EQ(own.seconds(), 3) << "asked for again";
  }
  EXPECT_EQ(worker.jobs, 3);
  OwnTime little(2);
  auto never = [](const Job&, Blob*, const std::string&) -> Finding {
    ADD_FAILURE() << "all are known";
    return {};
  };
  KernelSet kernels;
  EXPECT_EQ(compiler.compile(file, cases(file), 30, never, &little, &kernels).rule(), Rule::kLate);
}

TEST(KernelCompiler, ForgetsTheOldestFirst) {
  Worker worker;
  KernelCompiler tiny(1);  // Room for one.
  TraceFile file = tuned(1);
  compile(tiny, file, worker);
  compile(tiny, file, worker);
  EXPECT_EQ(worker.jobs, 1);
  TraceFile other = tuned(1);
  other.specs[0].json["constants"]["BLOCK"] = {{"i", 64}};
  compile(tiny, other, worker);
  compile(tiny, file, worker);
  EXPECT_EQ(worker.jobs, 3);
}

TEST(KernelCompiler, ConfigurationsMayFailAsLongAsOneIsLeft) {
  KernelCompiler compiler;
  Worker worker;
  worker.bad = {16, 64};
  TraceFile file = tuned(3);
  Tried tried = compile(compiler, file, worker);
  ASSERT_EQ(tried.ended.outcome(), Outcome::kPass) << human_text(tried.ended);
  auto linked = link_kernels(file, tried.kernels);
  ASSERT_TRUE(linked) << linked.why;
  const auto& choices = linked.value->cases[0].tape[1].choices;
  ASSERT_EQ(choices.size(), 1u);
  EXPECT_EQ(choices[0].grid[0], 2);
  EXPECT_EQ(linked.value->cubins.at(static_cast<size_t>(choices[0].cubin)).image, "\177ELF32");

  worker.bad = {16, 32, 64, 128};
  file.kernels[0].line = 42;
  Tried none = compile(compiler, tuned(1), worker);
  EXPECT_EQ(none.ended.outcome(), Outcome::kCompileError);
  EXPECT_EQ(human_text(none.ended), "line 3");
  TraceFile moved = tuned(1);
  moved.kernels[0].line = 42;
  EXPECT_EQ(human_text(compile(compiler, moved, worker).ended), "line 42")
      << "a failure names the candidate's own lines";
}

TEST(KernelCompiler, FaultsAndDeadlinesAreNotTheKernels) {
  TraceFile file = tuned(2);
  KernelCompiler compiler;
  KernelSet kernels;
  OwnTime own;
  for (Outcome outcome : {Outcome::kHarnessFault, Outcome::kTimeout}) {
    auto run = [&](const Job&, Blob*, const std::string&) { return made_up_finding(outcome, "so"); };
    EXPECT_EQ(compiler.compile(file, cases(file), 30, run, &own, &kernels).outcome(), outcome);
  }
  auto never = [](const Job&, Blob*, const std::string&) -> Finding {
    ADD_FAILURE() << "too late for a job";
    return {};
  };
  EXPECT_EQ(compiler.compile(file, cases(file), 0, never, &own, &kernels).outcome(), Outcome::kTimeout);
  Worker worker;
  EXPECT_EQ(compile(compiler, file, worker).ended.outcome(), Outcome::kPass) << "failures are not remembered";
}

TEST(KernelCompiler, SendsOnlyWhatAKernelNeeds) {
  TraceFile file = sample_trace_file();  // Kernel 1 calls kernel 0.
  TraceKernel alone = file.kernels[0];
  alone.name = "alone";
  file.kernels.insert(file.kernels.begin(), alone);
  file.cubins.clear();
  file.cases.clear();
  for (TraceGlobal& global : file.kernels[2].globals) {
    if (global.kind == TraceGlobal::Kind::kJit) global.kernel = 1;
  }
  TraceSpec spec;
  spec.kernel = 2;
  spec.json = {
      {"kernel", 2},
      {"key", "claimed"},
      {"constants", {{"op", {{"l", {{{"s", "jit:2"}}, {{"s", "jit:99"}}, {{"s", "text"}}}}}}, {"n", {{"i", 1}}}}}};
  file.specs = {spec};
  CompileArguments sent = compile_arguments(arrived(file), 0);
  ASSERT_EQ(sent.kernels.size(), 2u);
  EXPECT_EQ(sent.kernels[0]["name"], "k");
  EXPECT_EQ(sent.kernels[1]["name"], "user");
  EXPECT_EQ(sent.kernels[1]["decorator"], "constexpr_function");
  EXPECT_EQ(sent.spec["kernel"], 1);
  EXPECT_FALSE(sent.spec.contains("key"));
  EXPECT_EQ(sent.spec["constants"]["op"]["l"], Json::parse(R"([{"s": "jit:1"}, {"s": "jit:-1"}, {"s": "text"}])"));
  EXPECT_EQ(sent.kernels[1]["globals"][0], Json::parse(R"({"name": "k", "kind": "jit", "kernel": 0})"));
  EXPECT_EQ(sent.kernels[1]["globals"][1],
            Json::parse(R"({"name": "BLOCK", "kind": "constexpr", "value": {"i": 64}})"));
  EXPECT_EQ(sent.kernels[1]["globals"][2]["value"], Json::parse(R"({"dtype": "tl.float32"})"));
  CompileArguments other = sent;
  other.kernels[0]["line"] = 77;
  EXPECT_EQ(other.key(), sent.key());
  other.kernels[0]["source"] = "def k(): return 1";
  EXPECT_NE(other.key(), sent.key());
  EXPECT_EQ(sent.key().size(), secure_hash("").size()) << "a stranger's text is looked up under it";
}

TEST(Bundle, HoldsTraceAndKernels) {
  KernelCompiler compiler;
  Worker worker;
  TraceFile file = tuned(3);
  worker.bad = {32};
  Tried tried = compile(compiler, file, worker);
  std::string bundle = make_bundle(file, tried.kernels);
  auto parsed = parse_bundle(shared(bundle));
  ASSERT_TRUE(parsed) << parsed.why;
  EXPECT_EQ(parsed.value->cubins.size(), 2u);
  EXPECT_EQ(parsed.value->cases[0].tape[1].choices.size(), 2u);
  EXPECT_EQ(parsed.value->cubins[1].image, "\177ELF64");

  for (size_t cut = 0; cut < bundle.size(); ++cut) EXPECT_FALSE(parse_bundle(shared(bundle.substr(0, cut)))) << cut;
  EXPECT_FALSE(parse_bundle(shared(bundle + "x")));
  auto plain = parse_bundle(shared(write_trace_file(sample_trace_file())));
  EXPECT_TRUE(plain) << plain.why;
}

TEST(Bundle, RefusesForeignCubins) {
  TraceFile file = arrived(file_of({small_trace()}));  // It compiled by itself.
  KernelSet none;
  EXPECT_FALSE(link_kernels(file, none));
  TraceFile recorded = tuned(1);
  EXPECT_FALSE(link_kernels(recorded, none));
  EXPECT_FALSE(link_kernels(recorded, KernelSet(1)));
}

}  // namespace
}  // namespace tritonrl::kernel_compiler_test
