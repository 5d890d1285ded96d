// SPDX-License-Identifier: Apache-2.0
#include "verify/execute/kernel_compiler.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <thread>

#include "base/check.h"
#include "base/files/secure_hash.h"
#include "base/log.h"
#include "base/parallel.h"
#include "verify/trace/specialisation.h"
#include "verify/verdict.h"

namespace tritonrl {
namespace {

using Kind = TraceArg::Kind;
using Numbers = std::map<int64_t, int64_t>;  // Kernel index -> index among those that are sent.

int64_t renumber(const Numbers& numbers, int64_t index) {
  auto it = numbers.find(index);
  return it == numbers.end() ? -1 : it->second;
}

Json number_json(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

Json arg_json(const TraceArg& arg, const Numbers& numbers) {
  switch (arg.kind) {
    case Kind::kInt:
      return {{"i", arg.number}};
    case Kind::kFloat:
      return {{"f", number_json(arg.real)}};
    case Kind::kBool:
      return {{"b", arg.number != 0}};
    case Kind::kText:
      return {{"s", arg.text}};
    case Kind::kDtype:
      return {{"dtype", to_string(static_cast<Dtype>(arg.number))}};
    case Kind::kTritonDtype:
      return {{"dtype", "tl." + arg.text}};
    case Kind::kFunction:
      return {{"s", cat("jit:", renumber(numbers, arg.number))}};
    case Kind::kList: {
      Json list = Json::array();
      for (const TraceArg& item : arg.list) list.push_back(arg_json(item, numbers));
      return {{"l", list}};
    }
    default:  // Nothing else is a compile-time constant.
      return {{"n", nullptr}};
  }
}

Json global_json(const TraceGlobal& global, const Numbers& numbers) {
  Json json = {{"name", global.name}};
  switch (global.kind) {
    case TraceGlobal::Kind::kJit:
      json["kind"] = "jit";
      json["kernel"] = renumber(numbers, global.kernel);
      break;
    case TraceGlobal::Kind::kConstexpr:
    case TraceGlobal::Kind::kValue:
      json["kind"] = global.kind == TraceGlobal::Kind::kConstexpr ? "constexpr" : "value";
      json["value"] = arg_json(global.value, numbers);
      break;
    case TraceGlobal::Kind::kModule:
      json["kind"] = "module";
      json["path"] = global.path;
      break;
    case TraceGlobal::Kind::kMember:
      json["kind"] = "member";
      json["path"] = global.path;
      json["member"] = global.member;
      break;
    case TraceGlobal::Kind::kOpaque:
      json["kind"] = "opaque";
      break;
  }
  return json;
}

void functions_in(const TraceArg& arg, std::set<int64_t>* found) {
  if (arg.kind == Kind::kFunction) found->insert(arg.number);
  for (const TraceArg& item : arg.list) functions_in(item, found);
}

// A function among a spec's constants is {"s": "jit:INDEX"}.
std::optional<int64_t> handle(const Json& arg) {
  if (!arg.is_object() || arg.size() != 1 || !arg.contains("s") || !arg["s"].is_string()) return std::nullopt;
  const std::string& text = arg["s"].get_ref<const std::string&>();
  if (text.compare(0, 4, "jit:") != 0 || text.size() == 4 || text.size() > 10) return std::nullopt;
  if (text.find_first_not_of("0123456789", 4) != std::string::npos) return std::nullopt;
  return std::stoll(text.substr(4));
}

void handles_in(const Json& arg, std::set<int64_t>* found) {
  if (auto index = handle(arg)) found->insert(*index);
  if (arg.is_object() && arg.contains("l")) {
    for (const Json& item : arg["l"]) handles_in(item, found);
  }
}

Json renumbered(const Json& arg, const Numbers& numbers) {
  if (auto index = handle(arg)) return {{"s", cat("jit:", renumber(numbers, *index))}};
  if (!arg.is_object() || !arg.contains("l")) return arg;
  Json list = Json::array();
  for (const Json& item : arg["l"]) list.push_back(renumbered(item, numbers));
  return {{"l", list}};
}

int64_t size_of(const CompiledKernel& kernel) { return static_cast<int64_t>(kernel.file.bytes->size()); }

}  // namespace

CompileArguments compile_arguments(const TraceFile& trace, size_t index) {
  const TraceSpec& spec = trace.specs.at(index);
  std::set<int64_t> wanted = {spec.kernel};
  const Json constants = spec.json.value("constants", Json::object());
  for (const Json& arg : constants) handles_in(arg, &wanted);
  auto count = static_cast<int64_t>(trace.kernels.size());
  wanted.erase(wanted.lower_bound(count), wanted.end());
  // Whatever a kernel names comes before it, so that one pass from the last to the first finds all.
  for (int64_t i = count - 1; i >= 0; --i) {
    if (!wanted.count(i)) continue;
    for (const TraceGlobal& global : trace.kernels[static_cast<size_t>(i)].globals) {
      if (global.kind == TraceGlobal::Kind::kJit) wanted.insert(global.kernel);
      functions_in(global.value, &wanted);
    }
  }
  Numbers numbers;
  for (int64_t i : wanted) numbers.emplace(i, static_cast<int64_t>(numbers.size()));

  CompileArguments out;
  out.kernels = Json::array();
  for (const auto& [old_index, new_index] : numbers) {
    const TraceKernel& kernel = trace.kernels.at(static_cast<size_t>(old_index));
    Json globals = Json::array();
    for (const TraceGlobal& global : kernel.globals) globals.push_back(global_json(global, numbers));
    out.kernels.push_back({{"name", kernel.name},
                           {"source", kernel.source},
                           {"decorator", kernel.is_constexpr_function ? "constexpr_function" : "jit"},
                           {"line", kernel.line},
                           {"globals", globals}});
  }
  out.spec = spec.json;
  out.spec["kernel"] = renumber(numbers, spec.kernel);
  out.spec.erase("key");
  if (constants.is_object()) {
    for (const auto& [name, arg] : constants.items()) out.spec["constants"][name] = renumbered(arg, numbers);
  }
  return out;
}

std::string CompileArguments::key() const {
  Json texts = kernels;
  for (Json& kernel : texts) kernel.erase("line");
  return secure_hash(json_line({texts, spec}));
}

KernelCompiler::KernelCompiler(int64_t cache_bytes)
    : results_(cache_bytes, [](const Result& result) { return result.kernel ? size_of(*result.kernel) : -1; }) {}

KernelCompiler::Result KernelCompiler::run_job(const CompileArguments& wanted, const std::string& key,
                                               double deadline_s, const RunJob& run) const {
  Result result;
  if (deadline_s <= 0) return {nullptr, Rule::kDeadline, 0};
  Job job{"compile", {{"kernels", wanted.kernels}, {"spec", wanted.spec}}, ""};
  job.deadline_s = deadline_s;
  Blob blob;
  result.ended = run(std::move(job), &blob, key);
  if (!result.ended.passed()) return result;
  auto parsed = parse_trace_file(std::make_shared<const std::string>(blob.tensors()));
  if (!parsed) return {nullptr, {Rule::kForgedResult, parsed.why}, 0};
  if (parsed.value->cubins.size() != 1 || !parsed.value->cases.empty()) {
    return {nullptr, {Rule::kForgedResult, "the compiler answers with something else"}, 0};
  }
  try {
    check_compiled(wanted.spec, parsed.value->cubins[0]);
  } catch (const Tainted& tainted) {
    return {nullptr, {Rule::kForgedResult, tainted.why}, 0};
  }
  if (blob.header.is_object() && blob.header.contains("seconds") && blob.header["seconds"].is_number()) {
    result.seconds = std::max(blob.header["seconds"].get<double>(), 0.0);
  }
  std::string products = blob.header.is_object() ? blob.header.value("products", "") : "";
  result.kernel = std::make_shared<const CompiledKernel>(
      CompiledKernel{std::move(*parsed.value), products == "rounded" || products == "tf32", products == "tf32"});
  return result;
}

KernelCompiler::Result KernelCompiler::compile_one(const TraceFile& trace, size_t spec, double deadline_s,
                                                   const RunJob& run, OwnTime* own) {
  CompileArguments wanted = compile_arguments(trace, spec);
  std::string key = wanted.key();
  bool made = false;
  Result result = results_.get(
      key,
      [&] {
        ++compiled_;
        Result compiled = run_job(wanted, key, deadline_s, run);
        compiled.own_s = own->of_kernel(key);
        return compiled;
      },
      &made);
  if (made) return result;
  if (!result.kernel) return run_job(wanted, key, deadline_s, run);  // A failure has its own lines and deadline.
  ++hits_;
  own->add(result.own_s, key);
  result.seconds = 0;
  return result;
}

Finding KernelCompiler::compile(const TraceFile& file, const std::vector<const CaseTrace*>& cases, double deadline_s,
                                const RunJob& run, OwnTime* own, KernelSet* kernels, double* compiler_s) {
  std::set<size_t> found;
  for (const CaseTrace* trace : cases) {
    for (const TraceStep& step : trace->tape) {
      for (const TraceChoice& choice : step.choices) {
        if (choice.spec < 0 || choice.cubin >= 0) return {Rule::kForgedResult, "a launch that brings its own cubin"};
        found.insert(static_cast<size_t>(choice.spec));
      }
    }
  }
  std::vector<size_t> wanted(found.begin(), found.end());
  std::vector<Result> results(file.specs.size());
  int64_t cores = std::max<int64_t>(std::thread::hardware_concurrency(), 1);
  parallel_for(wanted.size(), std::min<int64_t>(OwnTime::kBeside, cores),
               [&](size_t i) { results[wanted[i]] = compile_one(file, wanted[i], deadline_s, run, own); });
  if (compiler_s) {
    *compiler_s = 0;
    for (const Result& result : results) *compiler_s += result.seconds;
  }
  for (size_t i : wanted) {
    Outcome outcome = results[i].ended.outcome();
    if (outcome == Outcome::kHarnessFault || outcome == Outcome::kTimeout) return results[i].ended;
  }
  if (own->over()) return own->finding();  // Each in time, but not all together.
  for (const CaseTrace* trace : cases) {
    for (const TraceStep& step : trace->tape) {
      bool any = !step.is_launch;
      for (const TraceChoice& choice : step.choices) any |= results[static_cast<size_t>(choice.spec)].kernel != nullptr;
      if (!any) return results[static_cast<size_t>(step.choices[0].spec)].ended;
    }
  }
  kernels->clear();
  for (Result& result : results) kernels->push_back(std::move(result.kernel));
  return {};
}

}  // namespace tritonrl
