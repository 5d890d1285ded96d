// SPDX-License-Identifier: Apache-2.0
// Tables: the metrics of an evaluation as text for a terminal. "54.2 % (40-67)" is a rate with its 95 % interval.
#pragma once

#include <string>

#include "eval/metrics.h"

namespace tritonrl {

// A line a level: rates, pass@k, speedup.
std::string to_table(const ResultsRow& row);
// A line a level: how many answers got through each stage.
std::string funnel_table(const ResultsRow& row);
// A line a level: fast_p; "" where it was not measured.
std::string fast_table(const ResultsRow& row);
// A line a level: correct answers beside the peer that the row was compared with (peer.h); "" where it was with none.
std::string peer_table(const ResultsRow& row);
// A line a rule that was broken, the most frequent first; "" where none was.
std::string rules_table(const ResultsRow& row);
// A line an operator, of the `most` that most tasks use; "" where operators are not known.
std::string operators_table(const ResultsRow& row, size_t most = 20);
// A line each: tasks of level 1 whose operators had training tasks, and those with one that had none; "" where that is
// not known.
std::string teaching_table(const ResultsRow& row);
// All of them that are not empty, with a blank line between two.
std::string all_tables(const ResultsRow& row);

}  // namespace tritonrl
