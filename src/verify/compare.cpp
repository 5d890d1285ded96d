// SPDX-License-Identifier: Apache-2.0
#include "verify/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "base/text.h"

namespace tritonrl {

// Unit roundoffs: float64 1.1e-16, float32 6e-8, float16 4.9e-4, bfloat16 3.9e-3. The floors of float32 leave room for
// sums of a million terms in another order and for fast exponentials, and none for float16 anywhere on the way
// (rms error 1.4e-4). For the 16-bit types the last rounding dominates: about eight of them at worst, two on average.
ErrorTolerance error_tolerance(Dtype dtype, Precision precision) {
  if (precision == Precision::kOtherProducts || (precision == Precision::kOther && dtype == Dtype::kFloat16)) {
    ErrorTolerance own = error_tolerance(dtype), half = error_tolerance(Dtype::kFloat16);
    return {std::max(own.floor, 2 * half.floor), std::max(own.rms_floor, 2 * half.rms_floor),
            std::max(own.cap, 2 * half.cap), own.quantum};
  }
  switch (dtype) {
    case Dtype::kFloat64:
      return {1e-9, 1e-10, 1e-6, 4.9e-324};
    case Dtype::kFloat32:
      return {1e-4, 3e-5, 1e-2, 1.4e-45};
    case Dtype::kFloat16:
      return {4e-3, 1e-3, 5e-2, 6e-8};
    default:
      return {3.2e-2, 8e-3, 2e-1, 9.2e-41};
  }
}

namespace {

float half_to_float(uint16_t h) {
  uint32_t sign = (h & 0x8000u) << 16, exponent = (h >> 10) & 31, mantissa = h & 1023;
  if (exponent == 31) {
    uint32_t bits = sign | 0x7f800000u | (mantissa << 13);
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
  }
  float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -24)
                                  : std::ldexp(static_cast<float>(mantissa + 1024), static_cast<int>(exponent) - 25);
  return sign ? -magnitude : magnitude;
}

template <class T>
T load(const BlobView& tensor, int64_t i) {
  T value;
  std::memcpy(&value, tensor.bytes.data() + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

double element(const BlobView& tensor, int64_t i) {
  switch (tensor.dtype) {
    case Dtype::kFloat32:
      return load<float>(tensor, i);
    case Dtype::kFloat64:
      return load<double>(tensor, i);
    case Dtype::kFloat16:
      return half_to_float(load<uint16_t>(tensor, i));
    case Dtype::kBfloat16: {
      uint32_t bits = static_cast<uint32_t>(load<uint16_t>(tensor, i)) << 16;
      float value;
      std::memcpy(&value, &bits, 4);
      return value;
    }
    case Dtype::kInt8:
      return load<int8_t>(tensor, i);
    case Dtype::kInt16:
      return load<int16_t>(tensor, i);
    case Dtype::kInt32:
      return load<int32_t>(tensor, i);
    case Dtype::kInt64:
      return static_cast<double>(load<int64_t>(tensor, i));
    default:
      return load<uint8_t>(tensor, i);
  }
}

Comparison wrong(Finding finding) { return {std::move(finding), INFINITY}; }

Comparison compare_exact(const BlobView& candidate, const BlobView& reference, const BlobView& truth,
                         const std::string& name) {
  int64_t size = item_size(reference.dtype), wrong_count = 0, first = -1;
  for (int64_t i = 0; i < candidate.numel(); ++i) {
    bool equal = std::memcmp(candidate.bytes.data() + i * size, reference.bytes.data() + i * size, size) == 0;
    // Where the float64 reference decides a tie the other way (an argmax), its answer is as good.
    if (!equal && truth.dtype == reference.dtype) {
      equal = std::memcmp(candidate.bytes.data() + i * size, truth.bytes.data() + i * size, size) == 0;
    }
    if (equal) continue;
    if (first < 0) first = i;
    ++wrong_count;
  }
  if (first < 0) return {};
  return wrong(wrong_element(Rule::kElements, {name, wrong_count, candidate.numel(), index_of(first, candidate.shape),
                                               element(reference, first), element(candidate, first)}));
}

Comparison compare_floats(const BlobView& candidate, const BlobView& reference, const BlobView& truth,
                          const std::string& name, Precision precision) {
  int64_t n = candidate.numel();
  ErrorTolerance tolerance = error_tolerance(reference.dtype, precision);
  double sum_t = 0, sum_r = 0;
  int64_t finite = 0;
  for (int64_t i = 0; i < n; ++i) {
    double t = element(truth, i), r = element(reference, i);
    if (!std::isfinite(t) || !std::isfinite(r)) continue;
    sum_t += t * t;
    sum_r += (r - t) * (r - t);
    ++finite;
  }
  double rms_t = finite ? std::sqrt(sum_t / static_cast<double>(finite)) : 0;
  double rms_r = finite ? std::sqrt(sum_r / static_cast<double>(finite)) : 0;
  double ref_max = 0;
  for (int64_t i = 0; i < n; ++i) {
    double t = element(truth, i), r = element(reference, i);
    double scale = std::abs(t) + rms_t;
    if (std::isfinite(t) && std::isfinite(r) && scale > 0) ref_max = std::max(ref_max, std::abs(r - t) / scale);
  }
  double allowed = std::min(std::max(kWorstFactor * ref_max, tolerance.floor), tolerance.cap);
  double allowed_rms =
      std::min(std::max(kRmsFactor * (rms_t > 0 ? rms_r / rms_t : 0), tolerance.rms_floor), tolerance.cap);

  Comparison result;
  double sum_c = 0;
  int64_t first = -1, wrong_count = 0, not_finite = 0;
  for (int64_t i = 0; i < n; ++i) {
    double t = element(truth, i), r = element(reference, i), c = element(candidate, i);
    bool fits;
    if (!std::isfinite(r) || !std::isfinite(t)) {
      // The reference's own dtype may overflow where float64 does not: either answer is right.
      fits = (std::isnan(c) && (std::isnan(r) || std::isnan(t))) || c == r || c == t ||
             (std::isfinite(c) && std::isfinite(t) && std::abs(c - t) <= allowed * (std::abs(t) + rms_t));
    } else if (!std::isfinite(c)) {
      fits = false;
      ++not_finite;
    } else {
      double error = std::abs(c - t), bound = allowed * (std::abs(t) + rms_t) + tolerance.quantum;
      sum_c += error * error;
      fits = error <= bound;
      result.worst = std::max(result.worst, error / bound);
    }
    if (fits) continue;
    if (first < 0 || (not_finite == 1 && !std::isfinite(c) && std::isfinite(t))) first = i;
    ++wrong_count;
  }
  if (wrong_count > 0) {
    double expected = element(truth, first), got = element(candidate, first);
    result.finding = wrong_element(not_finite > 0 ? Rule::kNotFinite : Rule::kElements,
                                   {name, wrong_count, n, index_of(first, candidate.shape), expected, got,
                                    allowed * (std::abs(expected) + rms_t) + tolerance.quantum});
    return result;
  }
  double rms_c = finite ? std::sqrt(sum_c / static_cast<double>(finite)) : 0;
  double bound = allowed_rms * rms_t + tolerance.quantum;
  result.worst = std::max(result.worst, rms_c / bound);
  if (rms_c > bound) result.finding = imprecise(name, reference.dtype, rms_c, bound);
  return result;
}

Comparison compare_nest(const Nest<BlobView>& candidate, const Nest<BlobView>& reference, const Nest<BlobView>& truth,
                        const std::string& name, Precision precision) {
  using Kind = Nest<BlobView>::Kind;
  CHECK(truth.kind == reference.kind && truth.children.size() == reference.children.size())
      << "the two references of a task differ in structure";
  if (Finding other = other_node(candidate, reference, name); !other.passed()) return wrong(std::move(other));
  if (candidate.kind == Kind::kLeaf) return compare_tensor(candidate.leaf, reference.leaf, truth.leaf, name, precision);
  Comparison result;
  for (size_t i = 0; i < candidate.children.size(); ++i) {
    std::string child =
        candidate.kind == Kind::kDict ? cat(name, "['", candidate.keys[i], "']") : cat(name, "[", i, "]");
    Comparison part = compare_nest(candidate.children[i], reference.children[i], truth.children[i], child, precision);
    if (!part.passed()) return part;
    result.worst = std::max(result.worst, part.worst);
  }
  return result;
}

// A copy of `nest` whose leaves' bytes are rewritten by fn(tensor, bytes); `store` keeps them alive.
template <class Fn>
Nest<BlobView> rewritten(const Nest<BlobView>& nest, std::vector<std::string>& store, const Fn& fn) {
  Nest<BlobView> out = nest;
  if (nest.kind == Nest<BlobView>::Kind::kLeaf) {
    store.emplace_back(nest.leaf.bytes);
    fn(nest.leaf, store.back());
    out.leaf.bytes = store.back();
  }
  for (auto& child : out.children) child = rewritten(child, store, fn);
  return out;
}

}  // namespace

Comparison compare_tensor(const BlobView& candidate, const BlobView& reference, const BlobView& truth,
                          const std::string& name, Precision precision) {
  CHECK(reference.shape == truth.shape) << "the two references of a task differ in shape";
  if (candidate.shape != reference.shape) {
    return wrong(other_form(Rule::kShape, name, Form(candidate.shape), Form(reference.shape)));
  }
  if (candidate.dtype != reference.dtype) {
    return wrong(other_form(Rule::kDtype, name, Form(candidate.dtype), Form(reference.dtype)));
  }
  return is_floating(reference.dtype) ? compare_floats(candidate, reference, truth, name, precision)
                                      : compare_exact(candidate, reference, truth, name);
}

Comparison compare_outputs(const Nest<BlobView>& candidate, const Nest<BlobView>& reference,
                           const Nest<BlobView>& truth, Precision precision) {
  return compare_nest(candidate, reference, truth, "output", precision);
}

std::string control_that_passes(const Nest<BlobView>& reference, const Nest<BlobView>& truth) {
  auto zeros = [](const BlobView&, std::string& bytes) { std::fill(bytes.begin(), bytes.end(), '\0'); };
  auto negated = [](const BlobView& tensor, std::string& bytes) {
    auto size = static_cast<size_t>(item_size(tensor.dtype));
    for (size_t at = 0; at < bytes.size(); at += size) {
      if (is_floating(tensor.dtype)) {
        bytes[at + size - 1] = static_cast<char>(bytes[at + size - 1] ^ 0x80);  // The sign bit.
      } else if (tensor.dtype == Dtype::kBool) {
        bytes[at] = !bytes[at];
      } else {
        for (size_t k = 0; k < size; ++k) bytes[at + k] = static_cast<char>(~bytes[at + k]);
      }
    }
  };
  auto rotated = [](const BlobView& tensor, std::string& bytes) {
    if (tensor.numel() > 1) std::rotate(bytes.begin(), bytes.begin() + item_size(tensor.dtype), bytes.end());
  };
  int64_t largest = 0;
  for_each_leaf(reference, [&](const BlobView& t, const std::string&) { largest = std::max(largest, t.numel()); });
  if (largest == 0) return "anything (the task has no output)";
  auto passes = [&](const auto& fn) {
    std::vector<std::string> store;
    store.reserve(4096);  // Views into the strings must stay valid.
    return compare_outputs(rewritten(reference, store, fn), reference, truth).passed();
  };
  if (passes(zeros)) return "zeros";
  if (passes(negated)) return "negated outputs";
  if (largest > 1 && passes(rotated)) return "rotated outputs (is every element the same?)";
  return "";
}

bool same_bytes(const BlobView& a, const BlobView& b) {
  return a.shape == b.shape && a.dtype == b.dtype && a.bytes == b.bytes;
}

}  // namespace tritonrl
