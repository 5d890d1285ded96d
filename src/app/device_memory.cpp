// SPDX-License-Identifier: Apache-2.0
#include "app/device_memory.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/Exception.h>

#include <new>

#include "base/text.h"

namespace tritonrl {

int64_t device_peak_bytes(const at::Device& device) {
  if (device.is_cpu()) return 0;
  c10::DeviceAllocator* allocator = c10::getDeviceAllocator(device.type());
  if (!allocator->initialized()) return 0;
  c10::DeviceIndex index = device.has_index() ? device.index() : c10::DeviceIndex{0};
  auto stats = allocator->getDeviceStats(index);
  allocator->resetPeakStats(index);
  return stats.allocated_bytes[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)].peak;
}

void advise_on_memory(const std::exception& error, const std::string& what, const std::string& settings) {
  bool ran_out = dynamic_cast<const c10::OutOfMemoryError*>(&error) || dynamic_cast<const std::bad_alloc*>(&error);
  std::string said = error.what();
  if (const auto* torch = dynamic_cast<const c10::Error*>(&error)) said = torch->what_without_backtrace();
  // Libraries that allocate for themselves, and the CPU, have no exception of their own.
  for (const char* sign : {"out of memory", "ALLOC_FAILED", "not enough memory", "can't allocate memory"}) {
    ran_out = ran_out || said.find(sign) != std::string::npos;
  }
  if (!ran_out) return;
  throw environment_error(cat("memory ran out while ", what, ": ", trim(split(said, '\n')[0])), "",
                          cat("lower ", settings,
                              "; the same command with another run.name starts anew, and "
                              "run.start_from takes over tasks and SFT"));
}

}  // namespace tritonrl
