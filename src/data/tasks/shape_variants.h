// SPDX-License-Identifier: Apache-2.0
// Shape variants: a task at other sizes, by rebinding its module-level integers jointly.
//
// A task's sizes are integers that stand at module level (`N = 1024`, `batch_size = 16`, `M = 1024 * 2`). Where they
// stand in the text instead (`torch.rand(4, 4)`, `input_shape = (64, 32)`, `return [128, 10]`), name_sizes() gives
// them a name first; equal numbers share one, because in most modules they must agree. Whether a proposal is a valid
// task nobody can tell from the text: verify/variants.h records the reference with each until one is.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tritonrl {

using Sizes = std::map<std::string, int64_t>;

// Module-level names that are assigned an integer literal or a product, sum, ... of such, once. Names that say that
// they are no size (dim, kernel_size, stride, ...) are among them.
Sizes module_integers(const std::string& source);
// Those of them that may be sizes: 4 or more, or called like a batch, and not called like a setting.
Sizes size_constants(const std::string& source);

// The source with the sizes in get_inputs(), get_init_inputs() and module-level tuples named `SIZE_<value>` at module
// level. Only numbers of 4 and more, and only positional arguments of tensor factories, elements of returned lists and
// of tuples. The program means the same. Unchanged where there is nothing to name.
std::string name_sizes(const std::string& source);

// Bindings to try, best first; each names only constants that change.
std::vector<Sizes> tiny_proposals(const Sizes& sizes);
std::vector<Sizes> larger_proposals(const Sizes& sizes);

}  // namespace tritonrl
