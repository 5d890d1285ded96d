// SPDX-License-Identifier: Apache-2.0
// Statistics for reports: means, percentiles, and intervals for rates.
#pragma once

#include <cstdint>
#include <vector>

namespace tritonrl {

struct Interval {
  double low = 0, high = 0;
};

// Wilson score interval for k successes of n (E. B. Wilson, JASA 1927); z = 1.96 is 95 %. n = 0 gives [0, 1].
Interval wilson(int64_t k, int64_t n, double z = 1.959963984540054);

// Unbiased pass@k from n samples of one task of which c are correct: 1 - C(n-c, k) / C(n, k)
// (Chen et al., "Evaluating large language models trained on code", 2021). REQUIRES: 0 <= c <= n, 1 <= k <= n.
double pass_at_k(int64_t n, int64_t c, int64_t k);

double mean(const std::vector<double>& values);    // 0 when empty.
double stddev(const std::vector<double>& values);  // Sample standard deviation (n - 1); 0 for fewer than 2.
// Mean without the lowest and the highest `share` of the values (0.1 = a tenth at each end); 0 when empty.
double trimmed_mean(std::vector<double> values, double share);
double percentile(std::vector<double> values, double p);  // Linear interpolation, p in [0, 100]; 0 when empty.

// Quantile p of Student's t distribution with `df` degrees of freedom (G. W. Hill, Algorithm 396, CACM 1970; exact for
// 1 and 2, else to about five digits). REQUIRES: 0.5 <= p < 1, df >= 1.
double student_t_quantile(double p, int64_t df);

}  // namespace tritonrl
