// SPDX-License-Identifier: Apache-2.0
// Sections: which sentences, tables and charts a run gives. Each add_* appends one section, or nothing when the run
// has no data for it (load_run has said so in `problems`).
#pragma once

#include "report/document.h"
#include "report/run_data.h"

namespace tritonrl::reporting {

Document tell(const RunData& run);

// sections_results.cpp
void add_verdict(const RunData& run, Document& document);  // The answer in plain words, and what it rests on.
void add_results(const RunData& run, Document& document);  // Base vs SFT vs RL, and paired differences.
void add_stages(const RunData& run, Document& document);   // Where samples ended.

// sections_training.cpp
void add_sft(const RunData& run, Document& document);
void add_rl(const RunData& run, Document& document);
void add_time(const RunData& run, Document& document);

// ---- Words ----

std::string percent(double share);                               // "41.7 %"
std::string percent_range(const Interval& interval, int64_t n);  // "29-56 %"; one decimal from n = 1000 on.
std::string points(double difference);                           // "+12.5", in percentage points.
std::string model_words(const std::string& model);               // "the base model", "SFT", "RL", others as they are.
std::string plural(int64_t count, const std::string& noun);      // "1 task", "12 tasks"
// "wrong_output 12, timeout 3": most frequent first, at most `limit` names, then "...".
std::string top_counts(const std::map<std::string, int64_t>& counts, size_t limit);

}  // namespace tritonrl::reporting
