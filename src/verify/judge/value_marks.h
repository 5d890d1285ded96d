// SPDX-License-Identifier: Apache-2.0
// Marks of what a tape holds (inputs, weights, whatever __init__ made), which tell what a run of it has changed.
//
//   auto before = mark_values(tape, key);  tape.run_forward();
//   for (int64_t id : changed_values(before, mark_values(tape, key, &before))) ...
//
// A mark is a keyed 64-bit hash of the bytes of a value's whole storage, taken on the device: one pass over memory. The
// key must be unknown to kernels. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "verify/replay/tape.h"

namespace tritonrl {

using ValueMarks = std::map<int64_t, uint64_t>;  // By id.

// Of every value that the tape holds; with `only`, of those that it names too. Waits for the device.
ValueMarks mark_values(const Tape& tape, uint64_t key, const ValueMarks* only = nullptr);
// Values of both whose marks differ, in rising order.
std::vector<int64_t> changed_values(const ValueMarks& before, const ValueMarks& after);
// A key nobody knows.
uint64_t new_mark_key();

}  // namespace tritonrl
