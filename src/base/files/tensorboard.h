// SPDX-License-Identifier: Apache-2.0
// TensorBoard's event files: scalars for whoever wants to watch a run with it.
//
// A file is a row of TFRecords
//   length (8 bytes, little endian), masked crc32c of these, data, masked crc32c of the data
// each an Event message (tensorflow/core/util/event.proto) in protobuf's wire format. Of it we write wall_time = 1
// (double), step = 2 (int64) and one of file_version = 3, summary = 5, session_log = 7.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "base/files/files.h"

namespace tritonrl {

uint32_t crc32c(std::string_view bytes);         // Castagnoli's polynomial, RFC 3720.
uint32_t masked_crc32c(std::string_view bytes);  // As TFRecords hold it: rotated by 15 bits, plus a constant.
std::string tf_record(std::string_view data);

using Scalars = std::map<std::string, double>;  // Tag -> value.

// Messages, as bytes. Values are stored as float.
std::string version_event(double wall_time);
// Tells readers to forget what they have read of steps from `step` on.
std::string restart_event(double wall_time, int64_t step);
std::string scalars_event(double wall_time, int64_t step, const Scalars& scalars);

double unix_time();  // Seconds since 1970.

}  // namespace tritonrl
