// SPDX-License-Identifier: Apache-2.0
#include "verify/gpu_path.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "verify/plan_graph.h"
#include "verify/timing_json.h"

namespace tritonrl {
namespace {

constexpr double kFloorShare = 0.9;  // Of what the memory needs: faster than that is no measurement.
constexpr int64_t kMaxReadings = 1000;

}  // namespace

GpuPath::GpuPath(const GpuTools& tools, const Task& task, std::vector<CaseSpec> cases, int64_t weight_seed, Rng inputs,
                 Rng poison)
    : tools_(tools),
      task_(task),
      cases_(std::move(cases)),
      weight_seed_(weight_seed),
      inputs_(inputs),
      poison_(poison) {
  CHECK(!cases_.empty()) << "a task without cases";
}

int64_t GpuPath::input_seed(const CaseSpec& spec, int64_t index) const {
  Rng stream = inputs_.at(spec.name).at(static_cast<uint64_t>(index));
  return static_cast<int64_t>(stream.next_u64() & 0x7fffffffffffff);
}

Finding GpuPath::end(const GpuAnswer& answer) {
  lost_ |= answer.lost;
  if (!answer.ended.empty()) tools_.references->blame(reference_->key, answer.ended);
  if (answer.lost) lane_.reset();  // Another attempt takes it while this one's results are still looked at.
  return answer.finding;
}

Finding GpuPath::ask_for_reference() {
  reference_ = tools_.references->ask(task_, cases_, weight_seed_);
  std::string blamed = tools_.references->blamed(reference_->key);
  if (!blamed.empty()) {
    task_failure_ = blamed;
    return {Rule::kReferenceFailed, cat("task ", task_.id, " is of no use: ", blamed)};
  }
  if (reference_->failure.empty()) return {};
  lost_ |= reference_->lost;
  if (!reference_->lost) task_failure_ = reference_->failure;
  if (reference_->lost) return {Rule::kVerifierFailed, reference_->failure};
  return {Rule::kReferenceFailed, cat("task ", task_.id, " is of no use: its reference failed: ", reference_->failure)};
}

const CaseSpec& GpuPath::main_case() const {
  auto full = std::find_if(cases_.begin(), cases_.end(), [](const CaseSpec& spec) { return !spec.tiny; });
  return full == cases_.end() ? cases_[0] : *full;
}

Finding GpuPath::record(const std::string& code, const RunRecord& run_record) {
  Finding ready = ask_for_reference();
  if (!ready.passed()) return ready;
  settled_.clear();
  code_ = code;
  Json list = Json::array();
  for (const CaseSpec& spec : cases_) {
    const Plan* plan = reference_->file.find(spec.recorded_as());
    if (!plan || !spec.not_possible.empty()) {
      auto said = reference_->not_possible.find(spec.recorded_as());
      std::string why =
          said == reference_->not_possible.end() ? spec.not_possible : cat("the reference fails: ", said->second);
      settled_[spec.name] = skipped_case(spec, why);
    } else if (!spec.instead_of.empty() && !settled_.count(spec.instead_of)) {
      settled_[spec.name] = skipped_case(spec, cat("case ", spec.instead_of, " is there"));
    } else if (spec.plan.empty()) {
      list.push_back(record_case(*plan, spec));
    }
  }
  Json args = {{"task_source", task_.source},
               {"candidate_source", code},
               {"weight_seed", weight_seed_},
               {"init", "tape"},
               {"init_inputs", list[0]["init_inputs"]},
               {"reference_parameters", list[0]["reference_parameters"]},
               {"cases", list},
               {"arch", 90}};
  Blob blob;
  Finding ended = run_record(std::move(args), &blob);
  if (!ended.passed()) return ended;
  auto parsed = parse_plan_file(std::make_shared<const std::string>(blob.tensors()));
  if (!parsed) return {Rule::kForgedResult, parsed.why};
  recording_ = std::move(*parsed.value);
  std::map<std::string, Finding> failed;
  try {
    failed = case_failures(blob.header);
  } catch (const Tainted& tainted) {
    return {Rule::kForgedResult, tainted.why};
  }
  for (const CaseSpec& spec : cases_) {
    if (settled_.count(spec.name)) continue;
    if (auto it = failed.find(spec.name); it != failed.end() && spec.additional) {
      settle(spec, it->second);
      continue;
    }
    const Plan* plan = recording_.find(spec.recorded_as());
    if (!plan) return {Rule::kForgedResult, "the recording lacks a case"};
    if (plan->input_steps > 0) return {Rule::kForgedResult, "the recording makes its own inputs"};
    if (spec.other_precision && output_dtypes(*plan) != output_dtypes(*reference_->file.find(spec.recorded_as()))) {
      settle(spec, Rule::kDtype);
    }
  }
  return {};
}

void GpuPath::settle(const CaseSpec& spec, const Finding& failed) {
  settled_[spec.name] = failed_before_it_ran(spec, failed);
}

Finding GpuPath::lease() {
  if (lane_) return {};
  lane_.emplace(tools_.lanes->acquire());
  GpuAnswer answer = lane_->give_task(reference_->key, *reference_->file.bytes);
  if (answer.finding.passed()) answer = lane_->give_candidate(make_bundle(recording_, kernels_));
  return end(answer);
}

Finding GpuPath::replay(const CaseSpec& spec, int64_t seed_index, double until, bool launches) {
  GpuRun run;
  run.task = reference_->key;
  run.name = spec.recorded_as();
  run.values = spec.values;
  run.additional = spec.additional;
  run.precision = precision_of(spec, code_);
  run.weight_seed = weight_seed_;
  run.input_seed = input_seed(spec, seed_index);
  run.poison = static_cast<uint32_t>(poison_.next_u64());
  run.launches = launches;
  run.deadline_s = until - now_s();
  if (run.deadline_s <= 0) return Rule::kDeadline;
  GpuAnswer answer = lane_->run(run);
  ran_ |= launches && !answer.lost;
  Finding ended = end(answer);
  if (at_ && answer.body.contains("skipped")) {
    at_->skipped = answer.body["skipped"].get<std::string>();
  } else if (at_ && launches && answer.body.contains("worst")) {
    at_->worst = std::max(at_->worst.value_or(0), answer.body["worst"].get<double>());
  }
  if (ended.outcome() == Outcome::kWrongOutput || ended.outcome() == Outcome::kNotFinite) {
    ended.told.sizes = spec.constants;
  }
  return ended;
}

Finding GpuPath::without_triton(const CaseSpec& spec, double until) {
  Finding ended = replay(spec, 0, until, /*launches=*/false);
  if (ended.outcome() == Outcome::kHarnessFault) return ended;
  if (!ended.passed()) return {};
  return Rule::kSameWithoutLaunches;
}

Finding GpuPath::tiny_run(double deadline_s) {
  Finding ready = lease();  // Others' work is not on this candidate's clock.
  if (!ready.passed()) return ready;
  double until = now_s() + deadline_s;
  const CaseSpec* spec = &cases_[0];
  for (const CaseSpec& one : cases_) {
    if (one.tiny) spec = &one;
  }
  results_.push_back({spec->name, {}, {}, {}});
  at_ = &results_.back();
  Finding ended = replay(*spec, 0, until, true);
  if (ended.passed()) ended = without_triton(*spec, until);
  at_->finding = ended;
  at_ = nullptr;
  if (!spec->tiny) results_.pop_back();  // full_run has more to say about it.
  return ended;
}

void GpuPath::run_case(const CaseSpec& spec, double until, bool twice, bool with_kill_switch) {
  at_ = &results_.back();
  Finding ended;
  for (int64_t index = 0; index < spec.input_seeds; ++index) {
    ended = replay(spec, index, until, true);
    if (at_->skipped) break;
    // Other garbage in fresh memory must not matter.
    if (ended.passed() && twice && index == 0) ended = replay(spec, index, until, true);
    if (ended.passed() && with_kill_switch && index == 0) ended = without_triton(spec, until);
    if (!ended.passed()) break;
  }
  if (!at_->skipped) at_->finding = ended;
  at_ = nullptr;
}

Finding GpuPath::full_run(double deadline_s, bool with_kill_switch) {
  Finding ready = lease();
  if (!ready.passed()) return ready;
  return run_cases(cases_, settled_, &results_, [&](const CaseSpec& spec, bool first) {
    run_case(spec, now_s() + deadline_s, first, with_kill_switch && !spec.additional);
  });
}

Finding GpuPath::time(double deadline_s) {
  Finding ready = lease();
  if (!ready.passed()) return ready;
  SharedDevice::Quiet quiet = lane_->quiet();
  try {
    lane_->freshen_noise();
  } catch (const Error& error) {
    lost_ = true;
    lane_.reset();
    return {Rule::kVerifierFailed, error.message()};
  }
  const CaseSpec* spec = &main_case();
  double until = now_s() + deadline_s;
  std::vector<Reading> readings;
  double floor_s = 0, batch_s = 0;
  Json first;
  GpuTiming timing;
  timing.task = reference_->key;
  timing.name = spec->name;
  timing.weight_seed = weight_seed_;
  // The candidate's are those it was judged on last: a kernel that keeps answers from one run to the next could do so
  // between two readings too, and the answer is at hand.
  timing.candidate_seed = input_seed(*spec, spec->input_seeds - 1);
  timing.reference_seed = input_seed(*spec, spec->input_seeds);
  timing.spec = tools_.timing->spec();
  while (readings.empty() || (tools_.timing->want_more(readings) && readings.size() < kMaxReadings)) {
    timing.deadline_s = until - now_s();
    if (timing.again && timing.deadline_s < 2 * batch_s) break;  // What is there has to do.
    if (timing.deadline_s <= 0) return Rule::kDeadline;
    GpuAnswer answer = lane_->time(timing);
    batch_s = timing.deadline_s - (until - now_s());
    Finding ended = end(answer);
    if (!ended.passed()) return ended;
    auto taken = readings_from_json(answer.body.at("readings"));
    if (taken.empty()) break;
    readings.insert(readings.end(), taken.begin(), taken.end());
    if (!timing.again) {
      floor_s = answer.body.value("floor_s", 0.0);
      triton_share_ = answer.body.value("triton_share", 0.0);
      first = std::move(answer.body);
    }
    timing.again = true;
    timing.spec.warm_ups = std::min<int64_t>(timing.spec.warm_ups, 2);
    timing.first_place = readings.back().place + 1;
  }
  auto result = tools_.timing->reduce(readings);
  if (!result) return Rule::kNoTime;
  if (result->candidate_s < kFloorShare * floor_s) return Rule::kTooFast;
  apply_band(&*result, std::max(lane_->info().noise_band(result->candidate_s), tools_.timing->least_band()));
  if (first.contains("reference_bytes")) result->reference_bytes = first["reference_bytes"].get<int64_t>();
  if (first.contains("candidate_bytes")) result->candidate_bytes = first["candidate_bytes"].get<int64_t>();
  timing_ = std::move(result);
  return {};
}

Finding GpuPath::lint(double deadline_s, TaskFindings* found) {
  Finding ready = ask_for_reference();
  if (!ready.passed()) return ready;
  lane_.emplace(tools_.lanes->acquire());
  GpuAnswer answer = lane_->give_task(reference_->key, *reference_->file.bytes);
  if (!answer.finding.passed()) return end(answer);
  const CaseSpec& spec = main_case();
  GpuTiming what;
  what.task = reference_->key;
  what.name = spec.name;
  what.weight_seed = weight_seed_;
  what.reference_seed = input_seed(spec, 0);
  what.candidate_seed = input_seed(spec, 1);
  what.deadline_s = deadline_s;
  answer = lane_->lint(what);
  Finding ended = end(answer);
  if (!ended.passed()) return ended;
  found->flags = answer.body.at("flags").get<std::vector<std::pair<std::string, std::string>>>();
  found->drops_tried = answer.body.at("drops_tried").get<int64_t>();
  found->drops_impossible = answer.body.at("drops_impossible").get<int64_t>();
  return {};
}

}  // namespace tritonrl
