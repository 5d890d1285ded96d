// SPDX-License-Identifier: Apache-2.0
// SHA-256, for keys under which a stranger's text is looked up: nobody can make two texts with one hash. For content of
// our own there is content_hash (text.h), which is faster.
#pragma once

#include <string>
#include <string_view>

namespace tritonrl {

std::string secure_hash(std::string_view bytes);  // 64 hex digits.

}  // namespace tritonrl
