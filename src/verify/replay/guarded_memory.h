// SPDX-License-Identifier: Apache-2.0
// GuardedMemory: LibTorch's CUDA allocator in the replayer. Every buffer lies between two guard zones, and is filled
// with NaN patterns before it is handed out, so that reads of memory that nobody wrote give NaN and writes outside of a
// buffer show.
//
// Freed blocks are kept for the next request of their size class. Not poisoned while timing. Thread rule: one thread
// and one stream.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tritonrl {

class GuardedMemory {
 public:
  static constexpr size_t kGuardBytes = 4096;

  // Puts itself in the place of LibTorch's allocator; before the first allocation. `cap_bytes`: all that may be held.
  static void install(size_t cap_bytes);

  // A new pattern for everything handed out from now on; also re-paints the guards of live buffers.
  static void new_poison(uint32_t random);
  static void set_poisoning(bool on);

  // Fills what was freed since the last sweep, whole blocks with their guard zones, and the guard zones of live
  // buffers, so that no run finds anything of the one before it where buffers are not poisoned. Queues; does not wait.
  static void sweep();

  // Words of guard zones that are overwritten in live buffers, or were in those freed since the last call. Damage to a
  // live buffer counts again until new_poison() repaints it. Waits for the device.
  static int64_t damage();

  // Bytes of live buffers as they were asked for, and the most of that since the last reset_peak().
  static size_t live_bytes();
  static size_t peak_bytes();
  static void reset_peak();
  // Hands the free blocks out in another order from now on, so that what is allocated next lies elsewhere.
  static void rotate();
  // Gives unused blocks back to the driver.
  static void trim();
};

}  // namespace tritonrl
