// SPDX-License-Identifier: Apache-2.0
// Which recipes there are: every single operation, and how several are put together. Internal to the synthesiser.
#pragma once

#include <optional>
#include <vector>

#include "base/rng.h"
#include "data/recipe.h"

namespace tritonrl {

// Every single operation, in a fixed order. `all_operators` adds those outside the core set. Synonyms may share a
// graph.
std::vector<Recipe> all_single_operations(bool all_operators);

// One draw of a fusion of two or more operations; nothing when the draw is degenerate (data/signal.h): draw again.
std::optional<Recipe> draw_fusion(Family family, bool all_operators, int64_t max_steps, Rng& rng);

}  // namespace tritonrl
