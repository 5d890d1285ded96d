// SPDX-License-Identifier: Apache-2.0
#include "verify/gpu_lane.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <future>

#include "base/build_paths.h"
#include "base/error.h"
#include "base/log.h"
#include "base/stats.h"
#include "base/text.h"
#include "verify/timing_json.h"

namespace tritonrl {
namespace {

constexpr double kHelloPatience = 180;  // CUDA contexts, LibTorch's libraries.
constexpr double kNoiseAge = 600;       // Seconds until the noise is measured again.
constexpr double kGrace = 120;          // Beyond a question's own deadline: the oracle's work.
constexpr size_t kTasksPerJudge = 16;

void log_spent(const std::string& device, const Json& question, const Json& answer) {
  std::vector<std::string> parts;
  for (const auto& [part, seconds] : answer.value("spent", std::vector<std::pair<std::string, double>>())) {
    if (seconds >= 1e-3) parts.push_back(cat(part, " ", std::llround(seconds * 1e3)));
  }
  log_debug(cat(device, ": ", question.value("do", ""), " [ms] ", join(parts, ", ")));
}

Json question_about(const char* what, const GpuRun& run) {
  return {{"do", what},
          {"task", run.task},
          {"case", run.name},
          {"values", run.values},
          {"additional", run.additional},
          {"precision", static_cast<int>(run.precision)},
          {"weight_seed", run.weight_seed},
          {"input_seed", run.input_seed},
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

double GpuInfo::noise_band(double seconds) const {
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

std::vector<std::string> GpuLanes::devices() {
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

std::unique_ptr<GpuLanes> GpuLanes::open(LaneOptions options) {
  std::unique_ptr<GpuLanes> lanes(new GpuLanes);
  lanes->options_ = std::move(options);
  std::vector<std::future<void>> starting;
  for (const std::string& device : lanes->options_.devices) {
    lanes->lanes_.push_back(std::make_unique<Lane>());
    Lane* lane = lanes->lanes_.back().get();
    lane->info.device = device;
    starting.push_back(std::async(std::launch::async, [&lanes, lane] { lanes->start(*lane); }));
  }
  for (auto& one : starting) one.wait();
  for (auto& one : starting) one.get();
  return lanes;
}

GpuLanes::~GpuLanes() = default;

SharedDevice* GpuLanes::shared(const std::string& name) {
  for (const auto& lane : lanes_) {
    if (lane->info.device == name) return &lane->shared;
  }
  return nullptr;
}

void GpuLanes::start(Lane& lane) {
  const std::string& folder = build_dir();
  double began = now_s();
  lane.tasks.clear();
  lane.channel = options_.start
                     ? options_.start(lane.info.device)
                     : Channel::start({folder + "/tritonrl_judge", lane.info.device, folder + "/tritonrl_replay"});
  ChannelMessage reply;
  lane.channel->send({{"do", "hello"},
                      {"replayers", options_.replayers},
                      {"memory_bytes", options_.memory_bytes},
                      {"deadline_s", kHelloPatience}});
  if (lane.channel->receive(&reply, kHelloPatience) != Channel::Answer::kCame) {
    lane.channel.reset();
    throw environment_error("the judge on " + lane.info.device + " does not come up", "",
                            "run `tritonrl doctor`; is the GPU in use by another program?");
  }
  const Json& body = reply.header;
  if (Finding found = finding_in(body); !found.passed()) {
    lane.channel.reset();
    throw environment_error(cat("the judge on ", lane.info.device, " does not come up: ", human_text(found)));
  }
  lane.info.name = body.value("name", "");
  lane.info.memory = body.value("memory", int64_t{0});
  lane.info.bandwidth = body.value("bandwidth", 0.0);
  log_debug(cat("the judge on ", lane.info.device, " came up in ", human_seconds(now_s() - began)));
}

bool GpuLanes::noise_is_old(const Lane& lane) const {
  return lane.info.noise.empty() || now_s() - lane.measured_at > kNoiseAge;
}

void GpuLanes::measure(Lane& lane) {
  if (!options_.protocol || lane.info.device.rfind("cuda", 0) != 0) return;
  auto fail = [&](const std::string& why) {
    lane.channel.reset();
    throw environment_error(cat("the noise of timing on ", lane.info.device, " cannot be measured: ", why));
  };
  ChannelMessage reply;
  lane.channel->send({{"do", "measure"}, {"spec", to_json(options_.protocol->spec())}, {"deadline_s", kHelloPatience}});
  if (lane.channel->receive(&reply, kHelloPatience) != Channel::Answer::kCame) fail("the judge does not answer");
  if (Finding found = finding_in(reply.header); !found.passed()) fail(human_text(found));
  lane.info.noise.clear();
  for (const Json& repeats : reply.header.value("noise", Json::array())) {
    std::vector<double> ratios, seconds;
    for (const Json& readings : repeats) {
      auto result = options_.protocol->reduce(readings_from_json(readings));
      if (!result) continue;
      ratios.push_back(result->ratio);
      seconds.push_back(result->reference_s);
    }
    if (ratios.size() < kLeastReadings) fail("its readings give no time");
    lane.info.noise.emplace_back(mean(seconds), noise_band_of(ratios));
  }
  lane.measured_at = now_s();
}

GpuLease GpuLanes::acquire() {
  std::unique_lock lock(mutex_);
  for (;;) {
    bool any = false;
    for (size_t i = 0; i < lanes_.size(); ++i) {
      Lane& lane = *lanes_[i];
      if (!lane.given_up.empty()) continue;
      any = true;
      if (lane.busy) continue;
      lane.busy = true;
      lock.unlock();
      try {
        if (!lane.channel) start(lane);
        return GpuLease(this, i);
      } catch (const Error& error) {
        log_warn(cat(lane.info.device, " is used no more: ", error.message()));
        lock.lock();
        lane.given_up = error.message();
        lane.busy = false;
        freed_.notify_all();
        break;
      }
    }
    if (!lock.owns_lock()) lock.lock();
    if (!any) {
      throw environment_error(cat("no GPU is left to verify on: ", lanes_.empty() ? "" : lanes_[0]->given_up), "",
                              "see nvidia-smi; verify.gpus: 0 verifies on the CPU");
    }
    freed_.wait_for(lock, std::chrono::milliseconds(100));
  }
}

void GpuLanes::release(size_t lane) {
  std::lock_guard lock(mutex_);
  lanes_[lane]->busy = false;
  freed_.notify_all();
}

GpuLease::~GpuLease() {
  if (lanes_) lanes_->release(lane_);
}

const GpuInfo& GpuLease::info() const { return lanes_->lanes_[lane_]->info; }

SharedDevice::Quiet GpuLease::quiet() const { return SharedDevice::Quiet(&lanes_->lanes_[lane_]->shared); }

void GpuLease::kill_judge() {
  if (auto& channel = lanes_->lanes_[lane_]->channel) channel->kill();
}

void GpuLease::freshen_noise() {
  GpuLanes::Lane& lane = *lanes_->lanes_[lane_];
  if (lane.channel && lanes_->noise_is_old(lane)) lanes_->measure(lane);
}

pid_t GpuLease::judge_process() const {
  const auto& channel = lanes_->lanes_[lane_]->channel;
  return channel ? channel->process() : -1;
}

GpuAnswer GpuLease::ask(const Json& question, const std::string& payload, double seconds) {
  GpuLanes::Lane& lane = *lanes_->lanes_[lane_];
  GpuAnswer answer;
  answer.lost = true;
  answer.finding = {Rule::kVerifierFailed, "the judge ended"};
  if (!lane.channel) return answer;
  ChannelMessage reply;
  auto came = Channel::Answer::kGone;
  if (lane.channel->send(question, payload)) came = lane.channel->receive(&reply, seconds);
  if (came != Channel::Answer::kCame) {
    if (came == Channel::Answer::kLate) answer.finding = {Rule::kVerifierFailed, "the judge did not answer in time"};
    if (!lanes_->options_.replayers) {  // Then it runs nothing but references.
      answer.ended = came == Channel::Answer::kLate ? "it takes too long" : "it ends the judge's process";
    }
    log_debug(cat(lane.info.device, ": ", human_text(answer.finding)));
    lane.channel.reset();  // The next lease starts another.
    return answer;
  }
  log_spent(lane.info.device, question, reply.header);
  answer.lost = false;
  answer.body = std::move(reply.header);
  answer.payload = std::move(reply.payload);
  answer.finding = finding_in(answer.body);
  answer.lost = answer.body.value("lost", false);
  if (answer.body.contains("ended")) {
    answer.ended = human_text(answer.finding);
    lane.channel.reset();
  }
  if (answer.body.contains("quarantined")) {
    log_warn(cat(lane.info.device, ": ", human_text(answer.finding)));
    lane.channel.reset();
    answer.lost = true;
  }
  return answer;
}

GpuAnswer GpuLease::give_task(const std::string& key, const std::string& recording) {
  auto& tasks = lanes_->lanes_[lane_]->tasks;
  auto it = std::find(tasks.begin(), tasks.end(), key);
  if (it != tasks.end()) {
    GpuAnswer answer;
    answer.finding = {};
    return answer;
  }
  GpuAnswer answer = ask({{"do", "task"}, {"key", key}}, recording, kGrace);
  if (answer.finding.passed()) {
    if (tasks.size() >= kTasksPerJudge) tasks.erase(tasks.begin());  // As the judge forgets them.
    tasks.push_back(key);
  }
  return answer;
}

GpuAnswer GpuLease::give_candidate(const std::string& recording) {
  return ask({{"do", "candidate"}}, recording, kGrace);
}

GpuAnswer GpuLease::run(const GpuRun& run) { return ask(question_about("run", run), "", run.deadline_s + kGrace); }

GpuAnswer GpuLease::ask_about(const char* what, const GpuRun& run, const Json& more, const std::string& payload,
                              double deadline_s) {
  Json question = question_about(what, run);
  question.update(more);
  return ask(question, payload, deadline_s);
}

GpuAnswer GpuLease::time(const GpuTiming& timing) {
  return ask({{"do", "time"},
              {"task", timing.task},
              {"case", timing.name},
              {"weight_seed", timing.weight_seed},
              {"input_seeds", {timing.reference_seed, timing.candidate_seed}},
              {"input_seed", timing.candidate_seed},
              {"spec", to_json(timing.spec)},
              {"first_place", timing.first_place},
              {"again", timing.again},
              {"deadline_s", timing.deadline_s}},
             "", timing.deadline_s + kGrace);
}

GpuAnswer GpuLease::lint(const GpuTiming& what, bool drops) {
  return ask({{"do", "lint"},
              {"task", what.task},
              {"case", what.name},
              {"weight_seed", what.weight_seed},
              {"input_seeds", {what.reference_seed, what.candidate_seed}},
              {"drops", drops},
              {"deadline_s", what.deadline_s}},
             "", what.deadline_s + kGrace);
}

}  // namespace tritonrl
