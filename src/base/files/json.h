// SPDX-License-Identifier: Apache-2.0
// JSON and JSON-lines files: read with errors that name file and line, written so that a reader never sees half a
// record.
#pragma once

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "base/files/files.h"

namespace tritonrl {

using Json = nlohmann::json;

// Reads a whole file. Throws Error (usage) when it is missing, (environment) when it cannot be read.
std::string read_file(const std::filesystem::path& path);

// Writes path atomically: temporary file beside it, fsync, rename, fsync of the folder. Throws Error (environment),
// e.g. on a full disk.
void write_file(const std::filesystem::path& path, std::string_view bytes);

// Parses a JSON file. Throws Error with the path and byte position.
Json read_json(const std::filesystem::path& path);

// Calls fn(line_number, object) for each non-empty line. Throws Error with "path:line" for a line that is not JSON.
void for_each_json_line(const std::filesystem::path& path, const std::function<void(int64_t, const Json&)>& fn);

// One line of JSON; bytes that are not UTF-8 become U+FFFD.
std::string json_line(const Json& value);

}  // namespace tritonrl
