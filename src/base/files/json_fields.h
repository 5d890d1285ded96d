// SPDX-License-Identifier: Apache-2.0
// Structs to JSON and back: a struct lists its fields once, as configs do (base/config.h).
//
//   struct Rate {
//     int64_t k = 0, n = 0;
//     template <class Self, class V>   // Self: this struct, const where it is written.
//     static void json_fields(Self& self, V& v) {
//       v("k", self.k);                // Always written, and must be there.
//       v.optional("n", self.n);       // Left out where it is empty (or what is given as third argument), and may be.
//       v.lenient("m", self.m);        // Always written, and may be missing.
//       v.note("rate", [&] { return self.value(); });  // Written for people, never read.
//     }
//     std::string problem() const;     // Optional: why what was read cannot be; "" = it can.
//   };
//   Json json = json_of(rate);
//   auto rate = from_json<Rate>(json, "a rate", "results.json");
//
// A field is a bool, a number, a text, JSON, an enum by its name (base/enum_names.h), such a struct, or an optional, a
// vector or a map from text of such. An optional that is empty is null; missing, it is empty.
#pragma once

#include <algorithm>
#include <concepts>
#include <map>
#include <optional>
#include <ranges>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/enum_names.h"
#include "base/error.h"
#include "base/files/json.h"
#include "base/text.h"

namespace tritonrl {

class JsonWriter;

template <class T>
concept JsonStruct = requires(const T& value, JsonWriter& v) {
  T::json_fields(value, v);
};

// A class around a text that is checked where it is made.
template <class T>
concept JsonText = requires(const T& value) {
  { value.str() } -> std::convertible_to<std::string>;
};

template <class T>
Json json_of(const T& value);

class JsonWriter {
 public:
  Json json = Json::object();

  template <class T>
  void operator()(const char* key, const T& value) {
    json[key] = json_of(value);
  }
  template <class T, class None = T>
  void optional(const char* key, const T& value, const None& none = None{}) {
    if (!(value == none)) json[key] = json_of(value);
  }
  template <class T>
  void lenient(const char* key, const T& value) {
    json[key] = json_of(value);
  }
  template <class Of>
  void note(const char* key, const Of& value_of) {
    json[key] = json_of(value_of());
  }
};

template <class T>
Json json_of(const T& value) {
  if constexpr (JsonStruct<T>) {
    JsonWriter writer;
    T::json_fields(value, writer);
    return std::move(writer.json);
  } else if constexpr (NamedEnum<T>) {
    return name_of(value);
  } else if constexpr (JsonText<T>) {
    return value.str();
  } else if constexpr (requires { value.has_value(); }) {
    return value ? json_of(*value) : Json();
  } else if constexpr (requires { typename T::mapped_type; }) {
    Json map = Json::object();
    for (const auto& [key, item] : value) map[key] = json_of(item);
    return map;
  } else if constexpr (std::ranges::range<T> && !std::convertible_to<T, std::string>) {
    Json list = Json::array();
    for (const auto& item : value) list.push_back(json_of(item));
    return list;
  } else {
    return value;
  }
}

// Reads the fields of one struct. Throws Error (usage) that says `what` it is, and `where` it stands.
class JsonReader {
 public:
  JsonReader(const Json& json, std::string what, std::string where)
      : json_(json), what_(std::move(what)), where_(std::move(where)) {
    if (!json.is_object()) throw usage_error(what_ + " must be a JSON object", where_);
  }

  template <class T>
  void operator()(const char* key, T&& field) {
    optional(key, field);
    auto it = json_.find(key);
    if (it == json_.end() || it->is_null()) throw usage_error(cat(what_, " has no field \"", key, "\""), where_);
  }
  template <class T>
  void operator()(const char* key, std::optional<T>& field) {
    optional(key, field);
  }
  template <class T, class... None>
  void optional(const char* key, T&& field, const None&...) {
    if (auto it = json_.find(key); it != json_.end() && !it->is_null()) read(*it, key, field);
    known_.push_back(key);
  }
  template <class T>
  void lenient(const char* key, T& field) {
    optional(key, field);
  }
  template <class T>
  void note(const char* key, const T&) {
    known_.push_back(key);
  }
  // Throws for a field that was not asked for.
  void refuse_others() const {
    for (const auto& [key, value] : json_.items()) {
      if (std::find(known_.begin(), known_.end(), key) == known_.end()) fail(key, "which is not known");
    }
  }

  // Reads all of `out`.
  template <JsonStruct T>
  void fill(T& out) {
    T::json_fields(out, *this);
    if constexpr (requires { T::kNoOtherFields; }) refuse_others();
    if constexpr (requires { out.problem(); }) {
      if (std::string problem = out.problem(); !problem.empty()) throw usage_error(cat(what_, ": ", problem), where_);
    }
  }

 private:
  [[noreturn]] void fail(const std::string& key, const char* how) const {
    throw usage_error(cat(what_, " has a field \"", key, "\" ", how), where_);
  }
  void expect(bool fits, const std::string& key, const char* how) const {
    if (!fits) fail(key, how);
  }

  template <class T>
  void read(const Json& json, const std::string& key, T& out) const {
    if constexpr (JsonStruct<T>) {
      JsonReader(json, cat("\"", key, "\" of ", what_), where_).fill(out);
    } else if constexpr (NamedEnum<T>) {
      std::string name;
      read(json, key, name);
      auto value = named<T>(name);
      if (!value) throw usage_error(cat(what_, " has an unknown ", key, " \"", name, "\""), where_);
      out = *value;
    } else if constexpr (JsonText<T>) {
      std::string text;
      read(json, key, text);
      out = T(text);
    } else if constexpr (std::same_as<T, Json>) {
      out = json;
    } else if constexpr (std::same_as<T, std::string>) {
      expect(json.is_string(), key, "that is no text");
      out = json.get<std::string>();
    } else if constexpr (std::same_as<T, bool>) {
      expect(json.is_boolean(), key, "that is neither true nor false");
      out = json.get<bool>();
    } else if constexpr (std::integral<T>) {
      bool fits = json.is_number_unsigned() ? std::in_range<T>(json.get<uint64_t>())
                                            : json.is_number_integer() && std::in_range<T>(json.get<int64_t>());
      expect(fits, key, "that is no whole number, or too large");
      out = json.get<T>();
    } else {
      static_assert(std::floating_point<T>);
      expect(json.is_number(), key, "that is no number");
      out = json.get<T>();
    }
  }
  template <class T>
  void read(const Json& json, const std::string& key, std::optional<T>& out) const {
    out.reset();
    if (!json.is_null()) read(json, key, out.emplace());
  }
  template <class T>
  void read(const Json& json, const std::string& key, std::vector<T>& out) const {
    expect(json.is_array(), key, "that is no list");
    out.clear();
    for (const Json& item : json) read(item, key, out.emplace_back());
  }
  template <class T>
  void read(const Json& json, const std::string& key, std::map<std::string, T>& out) const {
    expect(json.is_object(), key, "that is no object");
    out.clear();
    for (const auto& [name, item] : json.items()) read(item, cat(key, ".", name), out[name]);
  }
  template <class T>
  void read(const Json& json, const std::string& key, std::tuple<T&, T&>& out) const {
    expect(json.is_array() && json.size() == 2, key, "that is no pair");
    read(json[0], key, std::get<0>(out));
    read(json[1], key, std::get<1>(out));
  }

  const Json& json_;
  std::string what_, where_;
  std::vector<std::string> known_;
};

// Throws Error (usage).
template <JsonStruct T>
T from_json(const Json& json, const std::string& what, const std::string& where) {
  T value;
  JsonReader(json, what, where).fill(value);
  return value;
}

}  // namespace tritonrl
