// SPDX-License-Identifier: Apache-2.0
#include "verify/judge/written_elements.h"

#include "verify/trace/trace_graph.h"

namespace tritonrl {
namespace {

void add_numbers(const TraceArg& arg, std::vector<double>* numbers) {
  if (arg.kind == TraceArg::Kind::kFloat) numbers->push_back(arg.real);
  if (arg.kind == TraceArg::Kind::kInt) numbers->push_back(static_cast<double>(arg.number));
  for (const TraceArg& one : arg.list) add_numbers(one, numbers);
}

}  // namespace

std::unique_ptr<WrittenElements> count_written(const CaseTrace& reference, bool launches) {
  if (launches || count_compute_ops(reference) > 0) return nullptr;
  auto written = std::make_unique<WrittenElements>();
  written->constants.push_back(0);
  for (size_t i = reference.init_steps + reference.input_steps; i < reference.tape.size(); ++i) {
    for (const TraceArg& arg : reference.tape[i].args) add_numbers(arg, &written->constants);
    for (const auto& [name, arg] : reference.tape[i].kwargs) add_numbers(arg, &written->constants);
  }
  return written;
}

}  // namespace tritonrl
