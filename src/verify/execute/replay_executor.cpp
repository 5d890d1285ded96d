// SPDX-License-Identifier: Apache-2.0
#include "verify/execute/replay_executor.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "verify/execute/timing_json.h"

namespace tritonrl {
namespace {

constexpr double kFloorShare = 0.9;  // Of what the memory needs: faster than that is no measurement.
constexpr int64_t kMaxReadings = 1000;

JudgeAnswer answered(Finding finding) {
  JudgeAnswer answer;
  answer.finding = std::move(finding);
  return answer;
}

}  // namespace

double ReplayExecutor::most_growth() const { return std::numeric_limits<double>::infinity(); }

// A lost judge is given back at once: another attempt takes the GPU while this one's results are still looked at.
JudgeAnswer ReplayExecutor::kept(JudgeAnswer answer) {
  if (answer.lost) slot_.reset();
  return answer;
}

JudgeAnswer ReplayExecutor::begin(const Reference& reference, const TraceFile& trace, const KernelSet& kernels) {
  if (slot_) return answered({});
  if (!slots_.has(reference.target)) {  // Given up since; another attempt takes another kind.
    JudgeAnswer gone = answered({Rule::kVerifierFailed, cat("no ", reference.target.name, " is left to verify on")});
    gone.lost = true;
    return gone;
  }
  slot_.emplace(slots_.acquire(reference.key, &reference.target));
  JudgeAnswer answer = slot_->give_task(reference.key, *reference.file.bytes);
  if (answer.finding.passed()) answer = slot_->give_candidate(make_bundle(trace, kernels));
  return kept(std::move(answer));
}

JudgeAnswer ReplayExecutor::run(const JudgeRun& run, OwnTime*) { return kept(slot_->run(run)); }

TimeAnswer ReplayExecutor::time(JudgeTiming timing, const TimingProtocol& protocol) {
  SharedDevice::Quiet quiet = slot_->quiet();
  TimeAnswer out;
  try {
    slot_->freshen_noise();
  } catch (const Error& error) {
    out.answer = answered({Rule::kVerifierFailed, error.message()});
    out.answer.lost = true;
    slot_.reset();
    return out;
  }
  double until = now_s() + timing.deadline_s, floor_s = 0, batch_s = 0;
  std::vector<Reading> readings;
  Json first;
  timing.spec = protocol.spec();
  while (readings.empty() || (protocol.want_more(readings) && readings.size() < kMaxReadings)) {
    timing.deadline_s = until - now_s();
    if (timing.again && timing.deadline_s < 2 * batch_s) break;  // What is there has to do.
    if (timing.deadline_s <= 0) {
      out.answer = answered(Rule::kDeadline);
      return out;
    }
    out.answer = kept(slot_->time(timing));
    batch_s = timing.deadline_s - (until - now_s());
    if (!out.answer.finding.passed()) return out;
    auto taken = readings_from_json(out.answer.body.at("readings"));
    if (taken.empty()) break;
    readings.insert(readings.end(), taken.begin(), taken.end());
    std::vector<int64_t> chosen;
    for (const Json& one : out.answer.body.value("chosen", Json::array())) chosen.push_back(one.at("choice"));
    if (!chosen.empty() && std::ranges::count(out.chosen, chosen) == 0) out.chosen.push_back(std::move(chosen));
    if (!timing.again) {
      floor_s = out.answer.body.value("floor_s", 0.0);
      out.triton_share = out.answer.body.value("triton_share", 0.0);
      first = std::move(out.answer.body);
    }
    timing.again = true;
    timing.spec.warm_ups = std::min<int64_t>(timing.spec.warm_ups, 2);
    timing.first_place = readings.back().place + 1;
  }
  auto result = protocol.reduce(readings);
  if (!result) {
    out.answer = answered(Rule::kNoTime);
    return out;
  }
  if (result->candidate_s < kFloorShare * floor_s) {
    out.answer = answered(Rule::kTooFast);
    return out;
  }
  apply_band(&*result, std::max(slot_->info().noise_band(result->candidate_s), protocol.least_band()));
  if (first.contains("reference_bytes")) result->reference_bytes = first["reference_bytes"].get<int64_t>();
  if (first.contains("candidate_bytes")) result->candidate_bytes = first["candidate_bytes"].get<int64_t>();
  out.result = result;
  return out;
}

}  // namespace tritonrl
