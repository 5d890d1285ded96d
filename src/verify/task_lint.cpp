// SPDX-License-Identifier: Apache-2.0
#include "verify/task_lint.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/log.h"
#include "verify/compare.h"

namespace tritonrl {
namespace {

constexpr int64_t kMaxControls = 12;
constexpr double kAbsoluteTolerance = 1e-2;
constexpr double kNoise = 1e-2;

bool same(const Nest<BlobView>& a, const Nest<BlobView>& b) {
  if (a.kind != b.kind || a.children.size() != b.children.size()) return false;
  if (a.kind == Nest<BlobView>::Kind::kLeaf) return a.leaf.shape == b.leaf.shape && same_bytes(a.leaf, b.leaf);
  for (size_t i = 0; i < a.children.size(); ++i) {
    if (!same(a.children[i], b.children[i])) return false;
  }
  return true;
}

double element(const BlobView& tensor, int64_t i) {
  double value;
  std::memcpy(&value, tensor.bytes.data() + i * 8, 8);
  return value;
}

// Axis along which all slices are the same bytes, -1 = none.
int64_t uniform_axis(const BlobView& t) {
  if (t.shape.size() < 2 || t.numel() == 0) return -1;
  int64_t inner = item_size(t.dtype);
  for (size_t axis = t.shape.size(); axis-- > 0;) {
    int64_t n = t.shape[axis], outer = t.numel() * item_size(t.dtype) / (inner * n);
    bool uniform = n > 1;
    for (int64_t o = 0; o < outer && uniform; ++o) {
      const char* first = t.bytes.data() + o * n * inner;
      for (int64_t k = 1; k < n && uniform; ++k) {
        uniform = std::memcmp(first, first + k * inner, static_cast<size_t>(inner)) == 0;
      }
    }
    if (uniform) return static_cast<int64_t>(axis);
    inner *= n;
  }
  return -1;
}

struct Sums {
  bool any = false, zero = true, constant = true, small = true, floating = true;
  double error = 0, truth = 0;
};

void add_leaf(const BlobView& reference, const BlobView& truth, Sums* sums) {
  if (truth.dtype != Dtype::kFloat64) {
    sums->floating = sums->zero = sums->small = false;
    auto size = static_cast<size_t>(item_size(truth.dtype));
    for (size_t at = size; at < truth.bytes.size() && sums->constant; at += size) {
      sums->constant = std::memcmp(truth.bytes.data(), truth.bytes.data() + at, size) == 0;
    }
    sums->any |= truth.numel() > 0;
    return;
  }
  for (int64_t i = 0; i < truth.numel(); ++i) {
    double t = element(truth, i);
    sums->any = true;
    sums->zero &= t == 0;
    sums->small &= std::abs(t) <= kAbsoluteTolerance;
    sums->constant &= std::abs(t - element(truth, 0)) <= 1e-9 * std::abs(t);
    sums->truth += std::isfinite(t) ? t * t : 0;
    if (reference.dtype != Dtype::kFloat32) continue;
    float r;
    std::memcpy(&r, reference.bytes.data() + i * 4, 4);
    if (std::isfinite(r) && std::isfinite(t)) sums->error += (r - t) * (r - t);
  }
}

void add_all(const Nest<BlobView>& reference, const Nest<BlobView>& truth, Sums* sums) {
  if (reference.kind == Nest<BlobView>::Kind::kLeaf) add_leaf(reference.leaf, truth.leaf, sums);
  for (size_t i = 0; i < reference.children.size(); ++i) add_all(reference.children[i], truth.children[i], sums);
}

}  // namespace

std::vector<LintFlag> flags_of(const OracleAnswer& first, const OracleAnswer& other) {
  std::vector<LintFlag> flags;
  auto add = [&](const char* flag, const std::string& detail) { flags.push_back({flag, detail}); };
  auto passes = [&](const Nest<BlobView>& wrong) {
    return compare_outputs(wrong, first.outputs, first.truth).passed();
  };
  Comparison self = compare_outputs(first.outputs, first.outputs, first.truth);
  if (!self.passed()) add("fails", "its own comparison: " + human_text(self.finding));
  if (!same(first.again, first.outputs) && !passes(first.again))
    add("nondeterministic", "two runs under one seed differ");
  bool same_inputs = true, tensors = false;
  for (size_t i = 0; i < first.inputs.size() && i < other.inputs.size(); ++i) {
    if (!first.inputs[i].is_tensor || !other.inputs[i].is_tensor) continue;
    tensors = true;
    same_inputs &= first.inputs[i].tensor.shape == other.inputs[i].tensor.shape &&
                   same_bytes(first.inputs[i].tensor, other.inputs[i].tensor);
  }
  if (tensors && same_inputs) {
    add("seed_invariant", "get_inputs() gives the same tensors for two seeds");
  } else if (same(first.outputs, other.outputs) || passes(other.outputs)) {
    add("input_independent", "the outputs for two inputs are the same: a constant would pass");
  }
  Sums sums;
  add_all(first.outputs, first.truth, &sums);
  if (sums.any && sums.zero) {
    add("zero", "every output is zero");
  } else if (sums.any && sums.constant) {
    bool single = true;
    visit_leaves(first.outputs, [&](const BlobView& t) { single &= t.numel() <= 1; });
    if (!single) add("constant", "every output is one number all over");
  }
  for_each_leaf(first.outputs, [&](const BlobView& t, const std::string& path) {
    int64_t axis = sums.constant ? -1 : uniform_axis(t);
    if (axis >= 0) add("uniform", cat("output", path, " is the same all along axis ", axis));
  });
  if (sums.any && sums.small && !sums.zero) add("absolute", "every output is within 0.01 of zero");
  if (sums.truth > 0 && std::sqrt(sums.error / sums.truth) >= kNoise) {
    add("noise_level", cat("the reference is off by ", fixed(100 * std::sqrt(sums.error / sums.truth), 1), " %"));
  }
  std::string control = control_that_passes(first.outputs, first.truth);
  if (!control.empty()) add("control", control + " would pass");
  for (const auto& [op, outputs] : first.controls) {
    if (passes(outputs)) add("drop", cat("drop ", op, " would pass"));
  }
  return flags;
}

LintReport lint_task(Verifier& verifier, const Task& task, const std::map<std::string, int64_t>& sizes) {
  LintReport report;
  report.task_id = task.id;
  report.level = task.level;
  report.sizes = sizes;
  double start = now_s();
  auto reference = verifier.record(task, {{"full", sizes, false, 1}});
  if (reference->lost) reference = verifier.record(task, {{"full", sizes, false, 1}});
  if (reference->lost) throw environment_error(reference->failure);
  if (!reference->failure.empty()) report.flags.push_back({"unrecordable", clean_message(reference->failure)});
  if (verifier.gpus() && report.flags.empty()) {
    TaskFindings found;
    Finding ended = verifier.lint_on_gpu(task, sizes, &found);
    for (const auto& [flag, detail] : found.flags) report.flags.push_back({flag, detail});
    if (!ended.passed()) report.flags.push_back({"fails", human_text(ended)});
    report.controls = found.drops_tried;
    report.seconds = now_s() - start;
    return report;
  }
  auto ask = [&](int64_t input_seed) {
    Job job{"oracle",
            {{"source", task.source},
             {"constants", sizes},
             {"weight_seed", 1},
             {"input_seed", input_seed},
             {"controls", kMaxControls}},
            "",
            verifier.config().oracle_deadline_s,
            verifier.config().memory_mb << 20};
    job.max_result_bytes = int64_t{1} << 30;
    OracleAnswer answer = parse_oracle(verifier.pool().run(ZygoteKind::kInterpret, job));
    if (answer.lost) answer = parse_oracle(verifier.pool().run(ZygoteKind::kInterpret, job));
    if (answer.lost) throw environment_error(answer.failure);
    return answer;
  };
  OracleAnswer first = ask(101), other = first.failure.empty() ? ask(202) : OracleAnswer();
  const OracleAnswer& failed = first.failure.empty() ? other : first;
  if (!failed.failure.empty()) {
    report.flags.push_back({failed.out_of_memory ? "out_of_memory" : "fails", clean_message(failed.failure)});
  } else {
    auto more = flags_of(first, other);
    report.flags.insert(report.flags.end(), more.begin(), more.end());
    report.controls = static_cast<int64_t>(first.controls.size());
  }
  report.seconds = now_s() - start;
  return report;
}

}  // namespace tritonrl
