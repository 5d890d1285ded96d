// SPDX-License-Identifier: Apache-2.0
// Enums with names: one table an enum, and from it what configs parse and print and what help and messages list.
//
//   enum class Ratio { kToken, kSequence, kAnswer };
//   constexpr auto enum_names(Ratio) { return std::array{"token", "sequence", "answer"}; }  // In the enum's order.
//
// The table stands beside its enum, where argument-dependent lookup finds it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tritonrl {

template <class E>
concept NamedEnum = std::is_enum_v<E> && requires(E e) {
  enum_names(e);
};

template <NamedEnum E>
const char* name_of(E value) {
  return enum_names(value).at(static_cast<size_t>(value));
}

// The enumerator of that name, or nothing.
template <NamedEnum E>
std::optional<E> named(std::string_view name) {
  constexpr auto names = enum_names(E{});
  auto it = std::find(names.begin(), names.end(), name);
  return it == names.end() ? std::nullopt : std::optional(static_cast<E>(it - names.begin()));
}

template <NamedEnum E>
std::vector<std::string> names_of() {
  constexpr auto names = enum_names(E{});
  return {names.begin(), names.end()};
}

// For things that are "auto" until somebody decides.
enum class Switch { kAuto, kOn, kOff };
constexpr auto enum_names(Switch) { return std::array{"auto", "true", "false"}; }

}  // namespace tritonrl
