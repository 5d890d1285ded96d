// SPDX-License-Identifier: Apache-2.0
#include "data/epoch_shuffle.h"

#include "base/check.h"
#include "base/error.h"

namespace tritonrl {

size_t EpochShuffle::deal() {
  CHECK(!empty()) << "nothing to deal";
  if (order_of_ != epoch()) {
    order_of_ = epoch();
    order_ = members_;
    Rng rng = stream_.at(static_cast<uint64_t>(order_of_));
    rng.shuffle(order_);
  }
  return order_[static_cast<size_t>(dealt_++ % size())];
}

void EpochShuffle::go_to(int64_t dealt) {
  if (dealt < 0) throw usage_error("a position of a sampler's state is negative");
  dealt_ = dealt;
}

}  // namespace tritonrl
