// SPDX-License-Identifier: Apache-2.0
#include "verify/gpu/own_kernels.h"

#include <algorithm>

#include "verify/gpu/driver.h"

namespace tritonrl {
namespace {

constexpr const char* kPtx = R"(
.version 7.0
.target sm_70
.address_size 64

.visible .entry tritonrl_count_damage(.param .u64 p_at, .param .u64 p_words, .param .u32 p_pattern, .param .u64 p_counter)
{
  .reg .pred %p;
  .reg .u32 %t, %n, %pattern, %word, %one;
  .reg .u64 %at, %words, %counter, %i, %step, %address;
  ld.param.u64 %at, [p_at];
  ld.param.u64 %words, [p_words];
  ld.param.u32 %pattern, [p_pattern];
  ld.param.u64 %counter, [p_counter];
  mov.u32 %t, %tid.x;
  mov.u32 %n, %ntid.x;
  mov.u32 %one, 1;
  cvt.u64.u32 %i, %t;
  cvt.u64.u32 %step, %n;
LOOP:
  setp.ge.u64 %p, %i, %words;
  @%p bra DONE;
  shl.b64 %address, %i, 2;
  add.u64 %address, %address, %at;
  ld.volatile.u32 %word, [%address];
  add.u64 %i, %i, %step;
  setp.eq.u32 %p, %word, %pattern;
  @%p bra LOOP;
  red.add.u32 [%counter], %one;
  bra LOOP;
DONE:
  ret;
}

.visible .entry tritonrl_hash(.param .u64 p_at, .param .u64 p_bytes, .param .u64 p_key, .param .u64 p_out)
{
  .reg .pred %p, %whole;
  .reg .u32 %t, %n, %b, %g, %word;
  .reg .u64 %at, %bytes, %key, %out, %i, %step, %end, %address, %x, %y, %sum;
  ld.param.u64 %at, [p_at];
  ld.param.u64 %bytes, [p_bytes];
  ld.param.u64 %key, [p_key];
  ld.param.u64 %out, [p_out];
  mov.u32 %t, %tid.x;
  mov.u32 %n, %ntid.x;
  mov.u32 %b, %ctaid.x;
  mov.u32 %g, %nctaid.x;
  mad.lo.u32 %t, %b, %n, %t;
  mul.lo.u32 %n, %n, %g;
  cvt.u64.u32 %i, %t;
  cvt.u64.u32 %step, %n;
  shr.u64 %end, %bytes, 2;
  setp.eq.u64 %whole, %at, %at;
  mov.u64 %sum, 0;
LOOP:
  setp.ge.u64 %p, %i, %end;
  @%p bra NEXT;
  @!%whole bra BYTE;
  shl.b64 %address, %i, 2;
  add.u64 %address, %address, %at;
  ld.global.u32 %word, [%address];
  bra MIX;
BYTE:
  add.u64 %address, %i, %at;
  ld.global.u8 %word, [%address];
MIX:
  cvt.u64.u32 %x, %word;
  shl.b64 %y, %i, 32;
  add.u64 %x, %x, %y;
  xor.b64 %x, %x, %key;
  mul.lo.u64 %x, %x, 0xff51afd7ed558ccd;
  shr.u64 %y, %x, 33;
  xor.b64 %x, %x, %y;
  mul.lo.u64 %x, %x, 0xc4ceb9fe1a85ec53;
  shr.u64 %y, %x, 29;
  xor.b64 %x, %x, %y;
  add.u64 %sum, %sum, %x;
  add.u64 %i, %i, %step;
  bra LOOP;
NEXT:
  @!%whole bra DONE;
  setp.ne.u64 %whole, %at, %at;
  and.b64 %i, %bytes, 0xfffffffffffffffc;
  cvt.u64.u32 %end, %t;
  add.u64 %i, %i, %end;
  mov.u64 %end, %bytes;
  bra LOOP;
DONE:
  red.global.add.u64 [%out], %sum;
  ret;
}

.visible .entry tritonrl_hold(.param .u64 p_flag, .param .u64 p_limit)
{
  .reg .pred %p;
  .reg .u32 %value;
  .reg .u64 %flag, %limit, %start, %now;
  ld.param.u64 %flag, [p_flag];
  ld.param.u64 %limit, [p_limit];
  mov.u64 %start, %globaltimer;
WAIT:
  ld.volatile.u32 %value, [%flag];
  setp.ne.u32 %p, %value, 0;
  @%p bra OUT;
  mov.u64 %now, %globaltimer;
  sub.u64 %now, %now, %start;
  setp.lt.u64 %p, %now, %limit;
  @%p bra WAIT;
OUT:
  ret;
}

.visible .entry tritonrl_read_clock(.param .u64 p_out, .param .u64 p_ns)
{
  .reg .pred %p;
  .reg .u64 %out, %ns, %first, %start, %now, %c0, %c1;
  ld.param.u64 %out, [p_out];
  ld.param.u64 %ns, [p_ns];
  mov.u64 %first, %globaltimer;
TICK:
  mov.u64 %start, %globaltimer;
  mov.u64 %c0, %clock64;
  setp.eq.u64 %p, %start, %first;
  @%p bra TICK;
WAIT:
  mov.u64 %now, %globaltimer;
  mov.u64 %c1, %clock64;
  sub.u64 %first, %now, %start;
  setp.lt.u64 %p, %first, %ns;
  @%p bra WAIT;
  sub.u64 %c1, %c1, %c0;
  st.volatile.u64 [%out], %c1;
  st.volatile.u64 [%out+8], %first;
  ret;
}

.visible .entry tritonrl_spin(.param .u64 p_ns)
{
  .reg .pred %p;
  .reg .u64 %ns, %start, %now;
  ld.param.u64 %ns, [p_ns];
  mov.u64 %start, %globaltimer;
WAIT:
  mov.u64 %now, %globaltimer;
  sub.u64 %now, %now, %start;
  setp.lt.u64 %p, %now, %ns;
  @%p bra WAIT;
  ret;
}

.visible .entry tritonrl_read(.param .u64 p_at, .param .u64 p_bytes, .param .u64 p_sink)
{
  .reg .pred %p;
  .reg .u32 %t, %n, %b, %g, %sum, %a0, %a1, %a2, %a3;
  .reg .u64 %at, %end, %sink, %i, %step;
  ld.param.u64 %at, [p_at];
  ld.param.u64 %end, [p_bytes];
  ld.param.u64 %sink, [p_sink];
  mov.u32 %t, %tid.x;
  mov.u32 %n, %ntid.x;
  mov.u32 %b, %ctaid.x;
  mov.u32 %g, %nctaid.x;
  mad.lo.u32 %t, %b, %n, %t;
  mul.lo.u32 %n, %n, %g;
  mul.wide.u32 %i, %t, 16;
  mul.wide.u32 %step, %n, 16;
  add.u64 %end, %end, %at;
  add.u64 %i, %i, %at;
  mov.u32 %sum, 0;
LOOP:
  setp.ge.u64 %p, %i, %end;
  @%p bra DONE;
  ld.volatile.v4.u32 {%a0, %a1, %a2, %a3}, [%i];
  xor.b32 %a0, %a0, %a1;
  xor.b32 %a2, %a2, %a3;
  xor.b32 %a0, %a0, %a2;
  or.b32 %sum, %sum, %a0;
  add.u64 %i, %i, %step;
  bra LOOP;
DONE:
  setp.ne.u32 %p, %sum, 2863311530;
  @%p bra OUT;
  st.u32 [%sink], %sum;
OUT:
  ret;
}
)";

void launch(CUfunction function, unsigned blocks, unsigned threads, void** arguments) {
  const CudaDriver& driver = CudaDriver::get();
  CUlaunchConfig config{};
  config.gridDimX = blocks;
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = threads;
  config.blockDimY = config.blockDimZ = 1;
  driver.check(driver.launch(&config, function, arguments, nullptr), "launching our own kernel");
}

}  // namespace

OwnKernels& OwnKernels::get() {
  static OwnKernels kernels;
  return kernels;
}

OwnKernels::OwnKernels() {
  const CudaDriver& driver = CudaDriver::get();
  driver.check(driver.module_load(&module_, kPtx), "loading our own kernels");
  auto find = [&](CUfunction* function, const char* name) {
    driver.check(driver.module_function(function, module_, name), "our own kernels");
  };
  find(&damage_, "tritonrl_count_damage");
  find(&hash_, "tritonrl_hash");
  find(&hold_, "tritonrl_hold");
  find(&clock_, "tritonrl_read_clock");
  find(&spin_, "tritonrl_spin");
  find(&read_, "tritonrl_read");
}

void OwnKernels::count_damage(CUdeviceptr at, uint64_t words, uint32_t pattern, CUdeviceptr counter) {
  void* arguments[] = {&at, &words, &pattern, &counter};
  launch(damage_, 1, 256, arguments);
}

void OwnKernels::hash(CUdeviceptr at, uint64_t bytes, uint64_t key, CUdeviceptr out) {
  constexpr uint64_t kWordsPerBlock = 4096, kMostBlocks = 1024;
  void* arguments[] = {&at, &bytes, &key, &out};
  launch(hash_, static_cast<unsigned>(std::clamp<uint64_t>(bytes / 4 / kWordsPerBlock, 1, kMostBlocks)), 256,
         arguments);
}

void OwnKernels::hold(CUdeviceptr flag, uint64_t limit_ns) {
  void* arguments[] = {&flag, &limit_ns};
  launch(hold_, 1, 1, arguments);
}

void OwnKernels::read_clock(CUdeviceptr out, uint64_t ns) {
  void* arguments[] = {&out, &ns};
  launch(clock_, 1, 1, arguments);
}

void OwnKernels::spin(uint64_t ns) {
  void* arguments[] = {&ns};
  launch(spin_, 1, 1, arguments);
}

void OwnKernels::read_through(CUdeviceptr at, uint64_t bytes, CUdeviceptr sink) {
  void* arguments[] = {&at, &bytes, &sink};
  launch(read_, 1024, 256, arguments);
}

}  // namespace tritonrl
