// SPDX-License-Identifier: Apache-2.0
#include "verify/trace/bundle.h"

#include "verify/trace/byte_reader.h"

namespace tritonrl {
namespace {

constexpr char kBundleMagic[] = "TRPB";
constexpr size_t kMaxSpecs = 1024;

}  // namespace

Parsed<TraceFile> link_kernels(TraceFile file, const KernelSet& kernels) {
  if (!file.cubins.empty()) return {std::nullopt, "a trace with cubins of its own"};
  if (kernels.size() != file.specs.size()) return {std::nullopt, "a trace with other specs"};
  std::vector<int64_t> cubin_of(kernels.size(), -1);
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (!kernels[i]) continue;
    cubin_of[i] = static_cast<int64_t>(file.cubins.size());
    file.cubins.push_back(kernels[i]->cubin());
    file.cubins.back().kernel = file.specs[i].kernel;
    file.more_bytes.push_back(kernels[i]->file.bytes);
  }
  std::vector<CaseTrace> cases;
  for (CaseTrace& trace : file.cases) {
    bool whole = true;
    for (TraceStep& step : trace.tape) {
      if (!step.is_launch) continue;
      std::vector<TraceChoice> left;
      for (TraceChoice& choice : step.choices) {
        if (choice.cubin >= 0 || choice.spec < 0) return {std::nullopt, "a launch that brings its own cubin"};
        choice.cubin = cubin_of[static_cast<size_t>(choice.spec)];
        if (choice.cubin >= 0) left.push_back(std::move(choice));
      }
      whole = whole && !left.empty();
      step.choices = std::move(left);
    }
    if (whole) cases.push_back(std::move(trace));
  }
  if (cases.empty() && !file.cases.empty()) return {std::nullopt, "a launch without a cubin"};
  file.cases = std::move(cases);
  return {std::move(file), ""};
}

std::string make_bundle(const TraceFile& trace, const KernelSet& kernels) {
  std::string out = kBundleMagic;
  auto number = [&](auto value) { out.append(reinterpret_cast<const char*>(&value), sizeof value); };
  auto file = [&](const TraceFile& one) {
    number(static_cast<uint64_t>(one.bytes->size()));
    out += *one.bytes;
  };
  file(trace);
  number(static_cast<uint32_t>(kernels.size()));
  for (const auto& kernel : kernels) {
    number(static_cast<uint8_t>(kernel != nullptr));
    if (kernel) file(kernel->file);
  }
  return out;
}

Parsed<TraceFile> parse_bundle(std::shared_ptr<const std::string> bytes) {
  if (bytes->compare(0, 4, kBundleMagic) != 0) return parse_trace_file(std::move(bytes));
  try {
    ByteReader in(*bytes);
    in.raw(4);
    auto file = [&] {
      auto parsed = parse_trace_file(std::make_shared<const std::string>(in.raw(in.u64())));
      if (!parsed) throw Tainted{parsed.why};
      return std::move(*parsed.value);
    };
    TraceFile trace = file();
    KernelSet kernels;
    for (size_t n = in.count("specs", kMaxSpecs, 1); n > 0; --n) {
      kernels.emplace_back();
      if (!in.yes_or_no()) continue;
      auto kernel = std::make_shared<CompiledKernel>();
      kernel->file = file();
      if (kernel->file.cubins.size() != 1) throw Tainted{"a compiled kernel that is none"};
      kernels.back() = std::move(kernel);
    }
    if (in.left() > 0) throw Tainted{"the bundle continues after its end"};
    return link_kernels(std::move(trace), kernels);
  } catch (const Tainted& tainted) {
    return {std::nullopt, tainted.why};
  }
}

}  // namespace tritonrl
