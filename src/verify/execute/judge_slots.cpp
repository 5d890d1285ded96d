// SPDX-License-Identifier: Apache-2.0
#include "verify/execute/judge_slots.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <map>

#include "base/error.h"
#include "base/log.h"
#include "base/process/build_paths.h"
#include "base/stats.h"
#include "base/text.h"
#include "verify/execute/timing_json.h"

namespace tritonrl {
namespace {

constexpr double kHelloPatience = 180;  // CUDA contexts, LibTorch's libraries.
constexpr double kNoiseAge = 600;       // Seconds until the noise is measured again.
constexpr double kGrace = 120;          // Beyond a question's own deadline: the oracle's work.
constexpr double kMemoryShare = 0.25;   // Of a GPU's memory, for the answers that its judges keep.
constexpr size_t kTasksPerJudge = 16;

void log_spent(const std::string& device, const Json& question, const Json& answer) {
  std::vector<std::string> parts;
  for (const auto& [part, seconds] : answer.value("spent", std::vector<std::pair<std::string, double>>())) {
    if (seconds >= 1e-3) parts.push_back(cat(part, " ", std::llround(seconds * 1e3)));
  }
  log_debug(cat(device, ": ", question.value("do", ""), " [ms] ", join(parts, ", ")));
}

Json question_about(const char* what, const JudgeRun& run) {
  return {{"do", what},
          {"task", run.task},
          {"case", run.name},
          {"values", run.values},
          {"additional", run.additional},
          {"precision", static_cast<int>(run.precision)},
          {"weight_seed", run.weight_seed},
          {"noise_seed", run.noise_seed},
          {"input_seed", run.input_seed},
          {"earlier_seeds", run.earlier_seeds},
          {"calls", run.calls},
          {"choices", run.choices},
          {"poison", static_cast<uint32_t>(run.poison)},
          {"launches", run.launches},
          {"deadline_s", run.deadline_s}};
}

Finding finding_in(const Json& answer) {
  try {
    return finding_from_json(answer.value("finding", Json()), "the judge's answer");
  } catch (const Error& error) {
    return {Rule::kVerifierFailed, error.message()};
  }
}

}  // namespace

double DeviceInfo::noise_band(double seconds) const {
  double best = 0.01, distance = INFINITY;
  for (const auto& [duration, band] : noise) {
    double away = std::abs(std::log(std::max(seconds, 1e-9) / duration));
    if (away < distance) {
      distance = away;
      best = band;
    }
  }
  return best;
}

std::vector<std::string> JudgeSlots::devices() {
  std::vector<std::string> found;
  if (!std::filesystem::exists("/dev/nvidiactl")) return found;
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) {
    size_t count = trim(visible).empty() ? 0 : split(visible, ',').size();
    for (size_t i = 0; i < count; ++i) found.push_back(cat("cuda:", i));
    return found;
  }
  while (std::filesystem::exists(cat("/dev/nvidia", found.size()))) found.push_back(cat("cuda:", found.size()));
  return found;
}

std::unique_ptr<JudgeSlots> JudgeSlots::open(SlotOptions options) {
  std::unique_ptr<JudgeSlots> slots(new JudgeSlots);
  slots->options_ = std::move(options);
  std::map<std::string, std::shared_ptr<Device>> devices;
  std::vector<std::future<void>> starting;
  for (const std::string& device : slots->options_.devices) {
    slots->slots_.push_back(std::make_unique<Slot>());
    Slot* slot = slots->slots_.back().get();
    slot->info.device = device;
    auto& on = devices[device];
    if (!on) on = std::make_shared<Device>();
    ++on->slots;
    on->is_gpu = device.rfind("cuda", 0) == 0;
    slot->on = on;
  }
  for (auto& each : slots->slots_) {
    Slot* slot = each.get();
    starting.push_back(std::async(std::launch::async, [&slots, slot] { slots->start(*slot); }));
  }
  for (auto& one : starting) one.wait();
  for (auto& one : starting) one.get();
  return slots;
}

JudgeSlots::~JudgeSlots() = default;

SharedDevice* JudgeSlots::shared(const std::string& name) {
  for (const auto& slot : slots_) {
    if (slot->info.device == name) return &slot->on->shared;
  }
  return nullptr;
}

void JudgeSlots::start(Slot& slot) {
  const std::string& folder = build_dir();
  double began = now_s();
  slot.tasks.clear();
  // A judge measures its memory's bandwidth.
  SharedDevice::Quiet quiet(slot.on->among_others());
  slot.channel = options_.start
                     ? options_.start(slot.info.device)
                     : Channel::start({folder + "/tritonrl_judge", slot.info.device, folder + "/tritonrl_replay"});
  ChannelMessage reply;
  slot.channel->send({{"do", "hello"},
                      {"replayers", options_.replayers},
                      {"memory_bytes", options_.memory_bytes},
                      {"memory_share", kMemoryShare / static_cast<double>(slot.on->slots)},
                      {"deadline_s", kHelloPatience}});
  if (slot.channel->receive(&reply, kHelloPatience) != Channel::Answer::kCame) {
    slot.channel.reset();
    throw environment_error("the judge on " + slot.info.device + " does not come up", "",
                            "run `tritonrl doctor`; is the GPU in use by another program?");
  }
  const Json& body = reply.header;
  if (Finding found = finding_in(body); !found.passed()) {
    slot.channel.reset();
    throw environment_error(cat("the judge on ", slot.info.device, " does not come up: ", human_text(found)));
  }
  slot.info.name = body.value("name", "");
  if (body.contains("gpu")) slot.info.gpu = target_gpu_from(body["gpu"]);
  insist_on_support(slot.info.gpu, slot.info.device);
  slot.info.memory = body.value("memory", int64_t{0});
  slot.info.bandwidth = body.value("bandwidth", 0.0);
  log_debug(cat("the judge on ", slot.info.device, " came up in ", human_seconds(now_s() - began)));
}

bool JudgeSlots::noise_is_old(const Slot& slot) const {
  return slot.info.noise.empty() || now_s() - slot.on->measured_at > kNoiseAge;
}

void JudgeSlots::measure(Slot& slot) {
  if (!options_.protocol || slot.info.device.rfind("cuda", 0) != 0) return;
  auto fail = [&](const std::string& why) {
    slot.channel.reset();
    throw environment_error(cat("the noise of timing on ", slot.info.device, " cannot be measured: ", why));
  };
  ChannelMessage reply;
  slot.channel->send({{"do", "measure"}, {"spec", to_json(options_.protocol->spec())}, {"deadline_s", kHelloPatience}});
  if (slot.channel->receive(&reply, kHelloPatience) != Channel::Answer::kCame) fail("the judge does not answer");
  if (Finding found = finding_in(reply.header); !found.passed()) fail(human_text(found));
  std::vector<std::pair<double, double>> noise;
  for (const Json& repeats : reply.header.value("noise", Json::array())) {
    std::vector<double> ratios, seconds;
    for (const Json& readings : repeats) {
      auto result = options_.protocol->reduce(readings_from_json(readings));
      if (!result) continue;
      ratios.push_back(result->ratio);
      seconds.push_back(result->reference_s);
    }
    if (ratios.size() < kLeastReadings) fail("its readings give no time");
    noise.emplace_back(mean(seconds), noise_band_of(ratios));
  }
  for (auto& each : slots_) {
    if (each->on == slot.on) each->info.noise = noise;
  }
  slot.on->measured_at = now_s();
}

TargetGpu JudgeSlots::next_target() {
  std::lock_guard lock(mutex_);
  for (size_t tried = 0; tried < slots_.size(); ++tried) {
    const Slot& slot = *slots_[next_target_++ % slots_.size()];
    if (slot.given_up.empty()) return slot.info.gpu;
  }
  return slots_.empty() ? TargetGpu() : slots_[0]->info.gpu;
}

bool JudgeSlots::has(const TargetGpu& target) {
  std::lock_guard lock(mutex_);
  return std::ranges::any_of(slots_, [&](const auto& slot) { return slot->given_up.empty() && slot->is(target); });
}

JudgeLease JudgeSlots::acquire(const std::string& key, const TargetGpu* target) {
  std::unique_lock lock(mutex_);
  for (;;) {
    bool any = false;
    std::vector<size_t> free;
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (target && !slots_[i]->is(*target)) continue;
      any |= slots_[i]->given_up.empty();
      if (slots_[i]->given_up.empty() && !slots_[i]->busy) free.push_back(i);
    }
    std::stable_partition(free.begin(), free.end(), [&](size_t i) {
      const auto& tasks = slots_[i]->tasks;
      return std::find(tasks.begin(), tasks.end(), key) != tasks.end();
    });
    for (size_t i : free) {
      Slot& slot = *slots_[i];
      slot.busy = true;
      lock.unlock();
      try {
        if (!slot.channel) start(slot);
        return JudgeLease(this, i);
      } catch (const Error& error) {
        log_warn(cat(slot.info.device, " is used no more: ", error.message()));
        lock.lock();
        slot.given_up = error.message();
        slot.busy = false;
        freed_.notify_all();
        break;
      }
    }
    if (!lock.owns_lock()) lock.lock();
    if (!any) {
      throw environment_error(cat("no GPU is left to verify on: ", slots_.empty() ? "" : slots_[0]->given_up), "",
                              "see nvidia-smi; verify.gpus: 0 verifies on the CPU");
    }
    freed_.wait_for(lock, std::chrono::milliseconds(100));
  }
}

void JudgeSlots::release(size_t slot) {
  std::lock_guard lock(mutex_);
  slots_[slot]->busy = false;
  freed_.notify_all();
}

JudgeLease::~JudgeLease() {
  if (slots_) slots_->release(slot_);
}

const DeviceInfo& JudgeLease::info() const { return slots_->slots_[slot_]->info; }

SharedDevice::Quiet JudgeLease::quiet() const { return SharedDevice::Quiet(&slots_->slots_[slot_]->on->shared); }

void JudgeLease::kill_judge() {
  if (auto& channel = slots_->slots_[slot_]->channel) channel->kill();
}

void JudgeLease::freshen_noise() {
  JudgeSlots::Slot& slot = *slots_->slots_[slot_];
  if (slot.channel && slots_->noise_is_old(slot)) slots_->measure(slot);
}

pid_t JudgeLease::judge_process() const {
  const auto& channel = slots_->slots_[slot_]->channel;
  return channel ? channel->process() : -1;
}

JudgeAnswer JudgeLease::ask(const Json& question, const std::string& payload, double seconds) {
  JudgeSlots::Slot& slot = *slots_->slots_[slot_];
  JudgeAnswer answer;
  answer.lost = true;
  answer.finding = {Rule::kVerifierFailed, "the judge ended"};
  if (!slot.channel) return answer;
  ChannelMessage reply;
  auto came = Channel::Answer::kGone;
  if (slot.channel->send(question, payload)) came = slot.channel->receive(&reply, seconds);
  if (came != Channel::Answer::kCame) {
    if (came == Channel::Answer::kLate) answer.finding = {Rule::kVerifierFailed, "the judge did not answer in time"};
    if (!slots_->options_.replayers) {  // Then it runs nothing but references.
      answer.ended = came == Channel::Answer::kLate ? "it takes too long" : "it ends the judge's process";
    }
    log_debug(cat(slot.info.device, ": ", human_text(answer.finding)));
    slot.channel.reset();  // The next lease starts another.
    return answer;
  }
  log_spent(slot.info.device, question, reply.header);
  answer.lost = false;
  answer.body = std::move(reply.header);
  answer.payload = std::move(reply.payload);
  answer.finding = finding_in(answer.body);
  answer.lost = answer.body.value("lost", false);
  if (answer.body.contains("ended")) {
    answer.ended = human_text(answer.finding);
    slot.channel.reset();
  }
  if (answer.body.contains("quarantined")) {
    log_warn(cat(slot.info.device, ": ", human_text(answer.finding)));
    slot.channel.reset();
    answer.lost = true;
  }
  return answer;
}

JudgeAnswer JudgeLease::ask_in_turn(const Json& question, const std::string& payload, double seconds) {
  SharedDevice* shared = slots_->slots_[slot_]->on->among_others();
  const double came = now_s();
  auto ask_now = [&](const Json& what) {
    const double begins = now_s();
    JudgeAnswer answer = ask(what, payload, seconds);
    answer.waited_s = begins - came;
    bool short_of_memory = !answer.lost && answer.body.value("short_of_memory", false);
    if (short_of_memory && slots_->slots_[slot_]->on->is_gpu && answer.finding.outcome() == Outcome::kHarnessFault) {
      answer.finding.told.rule = Rule::kVerifierMemory;
    }
    return answer;
  };
  {
    SharedDevice::Turn turn(shared);
    JudgeAnswer answer = ask_now(question);
    if (!shared || answer.lost || !answer.body.value("short_of_memory", false)) return answer;
  }
  SharedDevice::Quiet quiet(shared);
  Json again = question;
  again["alone"] = true;
  return ask_now(again);
}

JudgeAnswer JudgeLease::give_task(const std::string& key, const std::string& trace) {
  auto& tasks = slots_->slots_[slot_]->tasks;
  auto it = std::find(tasks.begin(), tasks.end(), key);
  if (it != tasks.end()) {
    JudgeAnswer answer;
    answer.finding = {};
    return answer;
  }
  JudgeAnswer answer = ask({{"do", "task"}, {"key", key}}, trace, kGrace);
  if (answer.finding.passed()) {
    if (tasks.size() >= kTasksPerJudge) tasks.erase(tasks.begin());  // As the judge forgets them.
    tasks.push_back(key);
  }
  return answer;
}

JudgeAnswer JudgeLease::give_candidate(const std::string& trace) { return ask({{"do", "candidate"}}, trace, kGrace); }

JudgeAnswer JudgeLease::run(const JudgeRun& run) {
  return ask_in_turn(question_about("run", run), "", run.deadline_s + kGrace);
}

JudgeAnswer JudgeLease::ask_about(const char* what, const JudgeRun& run, const Json& more, const std::string& payload,
                                  double deadline_s) {
  Json question = question_about(what, run);
  question.update(more);
  return ask_in_turn(question, payload, deadline_s);
}

JudgeAnswer JudgeLease::time(const JudgeTiming& timing) {
  return ask({{"do", "time"},
              {"task", timing.task},
              {"case", timing.name},
              {"weight_seed", timing.weight_seed},
              {"noise_seed", timing.noise_seed},
              {"precision", static_cast<int>(timing.precision)},
              {"input_seeds", {timing.reference_seed, timing.candidate_seed}},
              {"input_seed", timing.candidate_seed},
              {"spec", to_json(timing.spec)},
              {"first_place", timing.first_place},
              {"again", timing.again},
              {"deadline_s", timing.deadline_s}},
             "", timing.deadline_s + kGrace);
}

JudgeAnswer JudgeLease::lint(const JudgeTiming& what, bool drops) {
  return ask_in_turn({{"do", "lint"},
                      {"task", what.task},
                      {"case", what.name},
                      {"weight_seed", what.weight_seed},
                      {"noise_seed", what.noise_seed},
                      {"input_seeds", {what.reference_seed, what.candidate_seed}},
                      {"drops", drops},
                      {"deadline_s", what.deadline_s}},
                     "", what.deadline_s + kGrace);
}

}  // namespace tritonrl
