// SPDX-License-Identifier: Apache-2.0
// Memory of this process: how much it holds, and how malloc is made to give it back.
#pragma once

#include <cstdint>

namespace tritonrl {

// Resident memory in bytes; 0 where the system does not say.
int64_t resident_bytes();

// Gives the holes of malloc's heap back when they have grown too much. malloc learns from the first frees to carve
// blocks of up to 32 MiB out of its heap; training frees them in another order than it asked for them, batches differ
// in length, and the heap grows around the holes. Giving back after every batch, or taking tensors straight from the
// system, costs a page fault for each page again (a fifth of the processor time), so it is done only now and then.
class HeapTrimmer {
 public:
  // After each unit of work of about the same size: the first sets the measure, more than 1.3 times that is trimmed.
  void after_unit();

 private:
  int64_t first_ = 0;
};

}  // namespace tritonrl
