// SPDX-License-Identifier: Apache-2.0
#include "verify/judge/judge.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <cuda_runtime_api.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>

#include "base/check.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "verify/trace/target_gpu.h"

namespace tritonrl {
namespace {

constexpr int kMaxFaultsInARow = 3;  // Replayers that did not come up, until the GPU is given up.
constexpr size_t kMaxTasks = 16;
constexpr int kAttempts = 3;  // A replayer may be lost to somebody else's doing, and its spare too.

// Of what this process may take from now on: a reference that needs more is told so, and the machine continues.
void limit_memory(int64_t bytes) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kibibytes = 0;
    if (word != "VmData:" || !(status >> kibibytes)) continue;
    auto most = static_cast<rlim_t>((kibibytes << 10) + bytes);
    rlimit limit{most, most};
    ::setrlimit(RLIMIT_DATA, &limit);
  }
}

Json failed(const std::string& why) { return {{"finding", to_json(Finding(Rule::kVerifierFailed, why))}}; }

}  // namespace

[[noreturn]] void forged(const std::string& what) { throw ReplayFailure{{Rule::kForgedResult, what}}; }

Json passed(Json answer) {
  answer["finding"] = to_json(Finding());
  return answer;
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  at::Tensor x = a.contiguous(), y = b.contiguous();
  auto bytes = static_cast<int64_t>(x.nbytes());
  return bytes == static_cast<int64_t>(y.nbytes()) &&
         (bytes == 0 || at::equal(bytes_of(x, 0, bytes), bytes_of(y, 0, bytes)));
}

at::Tensor from_bytes(std::string_view bytes, const std::vector<int64_t>& shape, Dtype dtype, at::Device device) {
  at::Tensor host = at::empty(shape, at::TensorOptions(at::kCPU).dtype(to_torch(dtype)));
  if (host.nbytes() != bytes.size()) forged("a parameter of another size");
  std::copy(bytes.begin(), bytes.end(), static_cast<char*>(host.data_ptr()));
  return host.to(device);
}

Judge::Judge(Channel& verifier, JudgeOptions options) : verifier_(verifier), options_(std::move(options)) {}
Judge::~Judge() = default;

void Judge::serve() {
  for (;;) {
    ChannelMessage question;
    if (verifier_.receive(&question, -1) != Channel::Answer::kCame) return;
    Json reply;
    spent_ = {};
    short_of_memory_ = false;
    reply_payload_.clear();
    try {
      reply = answer(question.header, std::move(question.payload));
    } catch (const ReplayFailure& failure) {
      short_of_memory_ |= failure.finding.outcome() == Outcome::kOutOfMemory;
      reply = {{"finding", to_json(failure.finding)}};
    } catch (const JudgeFault& fault) {
      short_of_memory_ |= fault.reference == Outcome::kOutOfMemory;
      reply = failed(fault.message);
      if (fault.gpu_is_gone) reply["quarantined"] = fault.message;
      if (fault.reference) reply.update({{"reference_failed", to_string(*fault.reference)}, {"why", fault.message}});
    } catch (const ReplayerGone&) {
      reply = failed("the replayer was lost");
      reply["lost"] = true;
    } catch (const std::exception& error) {
      bool memory = is_out_of_memory(error);
      short_of_memory_ |= memory;
      std::string why = memory ? "the memory does not hold this task" : std::string(error.what()).substr(0, 1000);
      reply = failed(why);
      if (memory) {
        oracles_.clear();
        oracle_order_.clear();
        oracle_bytes_ = 0;
      }
      if (memory && !options_.device.is_cuda()) {
        reply.update({{"reference_failed", to_string(Outcome::kOutOfMemory)}, {"why", why}});
      }
    }
    std::string lost = lost_context();
    if (!lost.empty()) {
      reply = failed(lost);
      reply.update({{"lost", true}, {"ended", lost}});
    }
    reply["spent"] = spent_.json();
    if (short_of_memory_) reply["short_of_memory"] = true;
    if (!verifier_.send(reply, reply_payload_) || !lost.empty()) return;
  }
}

// After an assertion in one of ATen's kernels, say, every call fails until the process ends. What a candidate does is
// done in a replayer, so it was the reference.
std::string Judge::lost_context() const {
  if (!options_.device.is_cuda()) return "";
  cudaError_t error = cudaDeviceSynchronize();
  if (error == cudaSuccess || error == cudaErrorMemoryAllocation) return "";
  return cat("the reference ends the GPU's context: ", cudaGetErrorString(error));
}

Json Judge::answer(const Json& question, std::string payload) {
  std::string what = question.at("do").get<std::string>();
  until_ = now_s() + question.value("deadline_s", kPatience);
  if (what == "hello") return hello(question);
  if (what == "task") {
    std::string key = question.at("key").get<std::string>();
    if (tasks_.count(key)) return passed();
    auto parsed = parse_trace_file(std::make_shared<const std::string>(payload));
    if (!parsed) throw JudgeFault{"the reference's trace does not parse: " + parsed.why};
    while (tasks_.size() >= kMaxTasks) {
      tasks_.erase(task_order_.front());
      task_order_.pop_front();
    }
    task_order_.push_back(key);
    Task& task = tasks_[key];
    task.file = std::move(*parsed.value);
    task.bytes = std::move(payload);
    return passed();
  }
  if (what == "candidate") {
    candidate_.reset();
    state_.clear();
    if (at_work_) at_work_->has_candidate = false;
    auto parsed = parse_bundle(std::make_shared<const std::string>(payload));
    if (!parsed) forged(parsed.why);
    candidate_ = std::move(*parsed.value);
    candidate_bytes_ = std::move(payload);
    return passed();
  }
  if (what == "inputs") return inputs(question, payload);
  if (what == "compare") return compare(question, payload);
  if (what == "run") return twice(question, &Judge::run);
  if (what == "time") return twice(question, &Judge::time);
  if (what == "lint") return lint(question);
  if (what == "measure") return measure(question);
  throw JudgeFault{"the verifier asked for " + what};
}

// Asks once more after what need not be the candidate's doing.
Json Judge::twice(const Json& question, Json (Judge::*fn)(const Json&)) {
  Json asked = question;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    try {
      return (this->*fn)(asked);
    } catch (const ReplayerGone& gone) {
      if (gone.killed && attempt + 1 == kAttempts) throw;
      asked.erase("again");  // What an earlier question prepared is gone too.
    } catch (const ReplayFailure& failure) {
      if (failure.finding.outcome() != Outcome::kOutOfMemory || attempt > 0) throw;
      asked.erase("again");
      make_room(question);  // It may have been our memory that was in the way.
    }
  }
  throw ReplayFailure{{Rule::kProcessEnded, "the kernels ended the process they ran in"}};
}

Json Judge::hello(const Json& question) {
  Json reply = passed({{"name", "CPU"}, {"memory", 0}});
  int64_t memory = int64_t{4} << 30;
  if (!options_.device.is_cuda()) {
    at::set_num_threads(1);  // Candidates are interpreted on the other cores, and sums come out the same everywhere.
    if (auto most = question.value("memory_bytes", int64_t{0}); most > 0) {
      memory = most;
      limit_memory(most);
    }
  }
  if (options_.device.is_cuda()) {
    cudaDeviceProp properties;
    size_t free = 0, total = 0;
    if (cudaGetDeviceProperties(&properties, options_.device.index()) != cudaSuccess ||
        cudaMemGetInfo(&free, &total) != cudaSuccess) {
      throw JudgeFault{"CUDA does not answer", true};
    }
    cache_bytes_ = properties.l2CacheSize;
    memory = static_cast<int64_t>(free);
    reply["name"] = properties.name;
    reply["gpu"] = to_json(TargetGpu{properties.major * 10 + properties.minor, properties.name,
                                     static_cast<int64_t>(properties.totalGlobalMem), properties.multiProcessorCount,
                                     static_cast<int64_t>(properties.sharedMemPerBlockOptin),
                                     static_cast<int64_t>(properties.sharedMemPerMultiprocessor),
                                     properties.maxThreadsPerMultiProcessor, properties.l2CacheSize});
    reply["memory"] = total;
    reply["free"] = free;
    if (free < (size_t{4} << 30)) throw JudgeFault{"another program holds the GPU's memory", true};
  }
  oracle_cap_ = static_cast<int64_t>(static_cast<double>(memory) * question.value("memory_share", 0.25));
  if (!question.value("replayers", true)) return reply;
  staging_ = Staging::create(options_.device);
  at_work_ = start_replayer();
  spare_ = start_replayer();
  greet();
  if (options_.device.is_cuda()) {
    bandwidth_ = ask({{"do", "bandwidth"}}).at("bandwidth").get<double>();
    reply["bandwidth"] = bandwidth_;
  }
  return reply;
}

Json Judge::measure(const Json& question) {
  greet();
  if (at_work_->had_candidates) {  // What was run there is not asked for a measure.
    replace_replayer();
    greet();
  }
  Json measured = ask({{"do", "measure"}, {"spec", question.at("spec")}});
  return passed({{"noise", measured.at("noise")}});
}

// --- Replayers.

std::unique_ptr<Judge::Remote> Judge::start_replayer() {
  auto remote = std::make_unique<Remote>();
  remote->channel = Channel::start({options_.replay_program, options_.device.str()}, staging_->inherit());
  remote->channel->send({{"do", "hello"}, {"staging", staging_->handle()}});
  return remote;
}

void Judge::greet() {
  while (!at_work_->greeted) {
    ChannelMessage reply;
    if (at_work_->channel->receive(&reply, kPatience) == Channel::Answer::kCame && reply.header.contains("ok")) {
      at_work_->greeted = true;
      faults_ = 0;
      return;
    }
    std::string why = reply.header.is_object() && reply.header.contains("failure")
                          ? human_text(finding_from_json(reply.header["failure"].at("finding"), "the replayer"))
                          : "it did not answer";
    if (++faults_ >= kMaxFaultsInARow) throw JudgeFault{cat("no replayer comes up on this GPU: ", why), true};
    at_work_ = start_replayer();
  }
}

void Judge::replace_replayer() {
  at_work_ = std::move(spare_);
  spare_ = start_replayer();
}

Json Judge::ask(Json question, const std::string& payload) {
  greet();
  double seconds = std::max(until_ - now_s(), 0.05);
  ChannelMessage reply;
  auto came = Channel::Answer::kGone;
  if (at_work_->channel->send(question, payload)) came = at_work_->channel->receive(&reply, seconds);
  if (came == Channel::Answer::kCame && reply.header.contains("ok")) {
    for (const auto& [part, spent] : reply.header.value("spent", std::vector<std::pair<std::string, double>>())) {
      spent_.add("replayer's " + part, spent);
    }
    return std::move(reply.header);
  }
  if (came == Channel::Answer::kLate) {
    replace_replayer();
    throw ReplayFailure{with_secret(Rule::kDeadline, "the kernels did not end before the deadline")};
  }
  if (came == Channel::Answer::kGone) {
    auto end = at_work_->channel->ended();
    replace_replayer();
    throw ReplayerGone{end && end->signal == SIGKILL};
  }
  const Json& failure = reply.header.at("failure");
  ReplayFailure thrown{finding_from_json(failure.at("finding"), "the replayer"), failure.at("lost").get<bool>()};
  if (thrown.context_lost) replace_replayer();
  if (thrown.finding.passed()) throw JudgeFault{"the replayer fails and says that nothing is wrong"};
  throw thrown;
}

void Judge::sync() {
  if (options_.device.is_cuda() && cudaStreamSynchronize(nullptr) != cudaSuccess) {
    throw JudgeFault{"the judge's own CUDA context failed", true};
  }
}

void Judge::push(const std::string& slot, const std::string& name,
                 const std::vector<std::pair<int64_t, at::Tensor>>& values) {
  Json items = Json::array();
  int64_t at = 0;
  auto flush = [&] {
    sync();
    ask({{"do", "put"}, {"slot", slot}, {"case", name}, {"items", items}});
    items = Json::array();
    at = 0;
  };
  for (const auto& [id, tensor] : values) {
    at::Tensor whole = tensor.contiguous();
    auto left = static_cast<int64_t>(whole.nbytes());
    for (int64_t offset = 0;;) {
      int64_t n = std::min(left, Staging::kBytes - at);
      if (n > 0) staging_->bytes(at, n).copy_(bytes_of(whole, offset, n));
      items.push_back({{"value", id}, {"offset", offset}, {"bytes", n}, {"at", at}});
      offset += n;
      left -= n;
      at += (n + 255) / 256 * 256;
      if (at >= Staging::kBytes || items.size() >= 4096) flush();
      if (left == 0) break;
    }
  }
  if (!items.empty()) flush();
}

void Judge::pull(const std::string& name, const char* kind, int64_t key, int64_t bytes,
                 const std::function<void(int64_t, const at::Tensor&)>& fn) {
  for (int64_t offset = 0; offset < bytes; offset += Staging::kBytes) {
    int64_t n = std::min(Staging::kBytes, bytes - offset);
    Json item = {{kind, key}, {"offset", offset}, {"bytes", n}, {"at", 0}};
    ask({{"do", "get"}, {"slot", "candidate"}, {"case", name}, {"items", Json::array({item})}});
    fn(offset, staging_->bytes(0, n));
    sync();
  }
}

}  // namespace tritonrl
