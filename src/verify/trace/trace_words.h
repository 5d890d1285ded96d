// SPDX-License-Identifier: Apache-2.0
// Trace words: the closed lists behind the texts of a trace that others resolve to something of their own: operators,
// layouts, memory formats, Triton's dtypes (docs/trace.md). What is in none of them is nobody's to resolve.
#pragma once

#include <string>

namespace tritonrl {

// "aten.mul.Tensor": of the namespace aten, an overload that begins with no underscore, and none that reads a file.
bool is_operator(const std::string& text);
bool is_layout(const std::string& text);  // Of a tensor in memory.
bool is_memory_format(const std::string& text);
bool is_triton_dtype(const std::string& text);  // "float32".

}  // namespace tritonrl
