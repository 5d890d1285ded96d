// SPDX-License-Identifier: Apache-2.0
// Disturbance: what a reference's answer owes to rounding. Run with one, its tape gives what another honest computation
// of the same might (verify/execute/compare.h uses such answers):
//
//   kRoundings   each operator's floating operands are moved, element by element, by a random share of up to kRoundings
//                roundings of their dtype (two in 16 bits), and by more where many of them are summed: for n terms, by
//                as many roundings as the square root of n, which is what their order makes of a sum. Functions that
//                are usually computed by way of a number near one (tanh, elu, softplus: exp(x) - 1, log(1 + y) ...) are
//                off by a quarter of that share of one besides.
//   kCut         float32 operands of products of matrices are cut to TF32's ten bits, as tensor cores take them,
//   kRounded     ... or rounded to them, as a kernel may do before,
//   kScattered   ... or each moved by a random share of up to one of those bits: where the two above are right by luck,
//                what tensor cores add up in another order need not be.
//
// Monte Carlo arithmetic (Parker, 1997) a whole operator at a time: the error of an answer is its computation's
// condition times the roundings of its steps, and this measures the product. Casts, copies, views, operators that give
// no floats and those that jump (floor, sign ...) are left alone: what they are given is exact, or nobody can say.
//
// Random numbers are the device's (seed_device). Thread rule: one thread.
#pragma once

#include "verify/replay/tape.h"

namespace tritonrl {

class Disturbance : public TapeFilter {
 public:
  enum class Kind { kRoundings, kCut, kRounded, kScattered };
  Disturbance(const CaseTrace& trace, Kind kind) : trace_(trace), kind_(kind) {}

  at::Tensor operand(const TraceStep& step, const std::string& name, const at::Tensor& operand) override;
  at::Tensor result(const TraceStep& step, const at::Tensor& result) override;

 private:
  bool computes(const TraceStep& step) const;
  double terms(const TraceStep& step) const;  // How many numbers go into one of its results, about.

  const CaseTrace& trace_;
  Kind kind_;
};

// `tensor` (float32) with the last 13 bits of each number cut off, or rounded to even where they were.
at::Tensor in_tf32(const at::Tensor& tensor, bool round);

}  // namespace tritonrl
