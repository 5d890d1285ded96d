// SPDX-License-Identifier: Apache-2.0
#include "verify/variants.h"

namespace tritonrl {
namespace {

constexpr size_t kMaxProposals = 24;

std::vector<std::string> calls(const CaseTrace& trace) {
  std::vector<std::string> out;
  for (const TraceStep& step : trace.tape) out.push_back(step.op);
  return out;
}

int64_t numel(const TraceValue& value) {
  int64_t n = 1;
  for (int64_t size : value.shape) n *= size;
  return n;
}

bool valid(const CaseTrace& trace, const CaseTrace& original, bool tiny) {
  if (calls(trace) != calls(original)) return false;
  bool empty = false;
  visit_leaves(trace.outputs, [&](int64_t id) { empty |= numel(trace.values[static_cast<size_t>(id)]) == 0; });
  if (empty) return false;
  int64_t elements = 0;
  for (const TraceValue& value : trace.values) elements += numel(value);
  return !tiny || elements <= kTinyElements;
}

class Search {
 public:
  Search(Verifier& verifier, const Task& task) : verifier_(verifier), task_(task) {}

  Variants run() {
    Variants out;
    out.source = task_.source;
    auto original = record({});
    if (!original->failure.empty()) {
      out.failure = original->failure;
      out.traces = traces_;
      return out;
    }
    original_ = original;  // Owns the trace.
    trace_ = original->file.find("full");
    search(size_constants(task_.source), &out);
    std::string named = name_sizes(task_.source);
    if ((out.tiny.empty() || out.larger.empty()) && named != task_.source) {
      Variants again;
      task_.source = again.source = named;
      auto renamed = record({});
      if (renamed->failure.empty() && valid(*renamed->file.find("full"), *trace_, false)) {
        search(size_constants(named), &again);
        bool better = !again.tiny.empty() + !again.larger.empty() > !out.tiny.empty() + !out.larger.empty();
        if (better) out = again;
      }
    }
    out.traces = traces_;
    return out;
  }

 private:
  std::shared_ptr<const Reference> record(const Sizes& sizes) {
    ++traces_;
    return verifier_.record(task_, {{"full", sizes}});
  }

  Sizes first_valid(const std::vector<Sizes>& proposals, bool tiny) {
    for (size_t i = 0; i < proposals.size() && i < kMaxProposals; ++i) {
      auto answer = record(proposals[i]);
      if (answer->failure.empty() && valid(*answer->file.find("full"), *trace_, tiny)) return proposals[i];
    }
    return {};
  }

  void search(const Sizes& sizes, Variants* out) {
    out->tiny = first_valid(tiny_proposals(sizes), true);
    out->larger = first_valid(larger_proposals(sizes), false);
  }

  Verifier& verifier_;
  Task task_;
  std::shared_ptr<const Reference> original_;
  const CaseTrace* trace_ = nullptr;
  int64_t traces_ = 0;
};

}  // namespace

Variants find_variants(Verifier& verifier, const Task& task) { return Search(verifier, task).run(); }

}  // namespace tritonrl
