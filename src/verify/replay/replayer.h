// SPDX-License-Identifier: Apache-2.0
// Replayer: the process in which a candidate's kernels run. It has a CUDA context and no Python, knows inputs and never
// an answer, and ends whenever its context is spoilt; the judge (verify/judge/judge.h) starts it and asks.
//
// Questions, all JSON over the Channel, answered by {"ok": true, ...} or {"failure": {"finding", "lost"}}:
//
//   hello     {"staging": handle}                                     -> {"device", "memory": bytes}
//   load      {"slot"} + a trace                                      replaces what the slot held
//   drop      {"slot"}
//   trim      {}                                                      drops the reference and memory kept for later
//   init      {"slot", "case", "seed", "pins": [[value, step], ...]}  runs __init__'s section; values that were put
//                                                                     before are there again after those steps
//   put       {"slot", "case", "items": [{"value", "offset", "bytes", "at"}]}   staging -> value (made when it is new)
//   forward   {"slot", "case", "launches": bool, "careful": bool, "choices", "poison": n}  -> {"damage": words,
//                                                                         "changed": ids of values held before}
//   get       {"slot", "case", "items": [{"value" or "output", "offset", "bytes", "at"}]}  row-major bytes -> staging
//   outputs   {"slot", "case"}                                        -> {"outputs": [{"shape", "dtype"}]}
//   forget    {"slot", "case"}                                        what forward made
//   bandwidth {}                                                      -> {"bandwidth"}
//   measure   {"spec"}                                                -> {"noise": [[readings, ...], ...]}
//   time      {"case", "reference_case", "spec", "restore", "first_place", "again"}
//                                                                     -> {"readings", "changed", "unlike": runs whose
//                                                                        outputs were others}; the first time also
//                                                                        "chosen", "triton_share", "..._bytes"
//
// `restore` names values that the candidate changes when it runs: they are put back before every run. `changed` leaves
// them out.
//
// Specs and readings as verify/execute/timing_json.h has them.
//
// Slots: "candidate" and "reference" (of which only the timing section and its inputs come here, never its outputs).
#pragma once

#include <map>
#include <memory>
#include <string>

#include "verify/judge/staging.h"
#include "verify/replay/driver.h"
#include "verify/replay/tape.h"
#include "verify/sandbox/channel.h"
#include "verify/trace/bundle.h"

namespace tritonrl {

class Replayer {
 public:
  Replayer(Channel& judge, at::Device device) : judge_(judge), device_(device) {}
  // Until the judge is gone or the context is spoilt.
  void serve();

 private:
  struct Slot {
    TraceFile file;
    std::unique_ptr<Launcher> launcher;
    std::map<std::string, std::unique_ptr<Tape>> tapes;
    std::map<int64_t, at::Tensor> images;  // Row-major copies of outputs that are being fetched; by output.
  };
  Json answer(const Json& question, std::string payload);
  Json hello(const Json& question);
  Json load(const Json& question, std::string payload);
  Json init(const Json& question);
  Json put(const Json& question);
  Json forward(const Json& question);
  Json get(const Json& question);
  Json outputs(const Json& question);
  Json time(const Json& question);
  Json bandwidth();
  Json measure(const Json& question);
  Slot& slot(const Json& question);
  Tape& tape(const Json& question);
  void wait();

  Channel& judge_;
  at::Device device_;
  std::unique_ptr<Staging> staging_;
  std::map<std::string, Slot> slots_;
};

}  // namespace tritonrl
