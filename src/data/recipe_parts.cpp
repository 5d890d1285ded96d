// SPDX-License-Identifier: Apache-2.0
#include "data/recipe_parts.h"

#include "base/text.h"

namespace tritonrl {

namespace {

std::string module_of(const Core& core) {
  if (core.op == "linear") return cat("self.linear = nn.Linear(k, n", core.bias ? "" : ", bias=False", ")");
  if (core.op == "rms_norm") return cat("self.norm = nn.RMSNorm(n, eps=", python_float(core.eps), ")");
  return cat("self.norm = nn.LayerNorm(n", core.eps == 1e-5 ? "" : cat(", eps=", python_float(core.eps)),
             core.bias ? "" : ", bias=False", ")");
}

bool has_parameters(const Recipe& recipe) { return recipe.core.weight || recipe.core.op == "linear"; }

}  // namespace

std::string input_names(const Recipe& recipe) {
  std::vector<std::string> names;
  for (size_t i = 0; i < recipe.inputs.size(); ++i) names.push_back(input_name(i));
  return join(names, ", ");
}

std::vector<std::string> operand_names(const Step& step) {
  std::vector<std::string> names = {"x"};
  for (int other : step.others) names.push_back(other == kKeptInput ? "r" : input_name(static_cast<size_t>(other)));
  return names;
}

bool keeps_input(const Recipe& recipe) {
  for (const auto* steps : {&recipe.before, &recipe.after}) {
    for (const Step& step : *steps) {
      for (int other : step.others) {
        if (other == kKeptInput) return true;
      }
    }
  }
  return false;
}

std::string constructor_of(const Recipe& recipe) {
  if (!has_parameters(recipe)) return "";
  return cat("    def __init__(self, ", recipe.core.op == "linear" ? "k, n" : "n",
             "):\n        super().__init__()\n        ", module_of(recipe.core), "\n\n");
}

std::string init_arguments(const Recipe& recipe) {
  if (!has_parameters(recipe)) return "";
  return recipe.core.op == "linear" ? "K, N" : "N";
}

}  // namespace tritonrl
