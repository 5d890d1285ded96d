// SPDX-License-Identifier: Apache-2.0
// Pieces of text that a recipe's PyTorch source and its Triton solution have in common. Internal to the synthesiser.
#pragma once

#include <string>
#include <vector>

#include "data/recipe.h"

namespace tritonrl {

// "x", "y", "z": the arguments of forward, in order.
inline std::string input_name(size_t index) { return std::string(1, "xyz"[index]); }
std::string input_names(const Recipe& recipe);  // "x, y".
std::vector<std::string> operand_names(const Step& step);
// Does a step use the first input as it came in?
bool keeps_input(const Recipe& recipe);
// Text of __init__ with a blank line after it, "" when there are no parameters.
std::string constructor_of(const Recipe& recipe);
std::string init_arguments(const Recipe& recipe);  // "K, N"; "" when there are no parameters.

}  // namespace tritonrl
