// SPDX-License-Identifier: Apache-2.0
#include "verify/gpu/judge.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <cuda_runtime_api.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/text.h"
#include "verify/gpu/task_lint.h"

namespace tritonrl {
namespace {

constexpr double kPatience = 60;     // For questions that take no time at all.
constexpr int kMaxFaultsInARow = 3;  // Replayers that did not come up, until the GPU is given up.
constexpr size_t kMaxTasks = 16;
constexpr int kAttempts = 3;  // A replayer may be lost to somebody else's doing, and its spare too.

struct ReplayerGone {
  bool killed = false;  // By SIGKILL: somebody else's doing, as no kernel can send it.
};

[[noreturn]] void forged(const std::string& what) { throw ReplayFailure{{Rule::kForgedResult, what}}; }

Json passed(Json answer = Json::object()) {
  answer["finding"] = to_json(Finding());
  return answer;
}

Json failed(const std::string& why) { return {{"finding", to_json(Finding(Rule::kVerifierFailed, why))}}; }

}  // namespace

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  at::Tensor x = a.contiguous(), y = b.contiguous();
  auto bytes = static_cast<int64_t>(x.nbytes());
  return bytes == static_cast<int64_t>(y.nbytes()) &&
         (bytes == 0 || at::equal(bytes_of(x, 0, bytes), bytes_of(y, 0, bytes)));
}

at::Tensor from_bytes(const PlanParameter& parameter, const PlanValue& value, at::Device device) {
  at::Tensor host = at::empty(value.shape, at::TensorOptions(at::kCPU).dtype(to_torch(value.dtype)));
  if (host.nbytes() != parameter.initial.size()) forged("a parameter of another size");
  std::copy(parameter.initial.begin(), parameter.initial.end(), static_cast<char*>(host.data_ptr()));
  return host.to(device);
}

Finding structure_difference(const Nest<int64_t>& got, const Nest<int64_t>& expected, const std::string& name) {
  Finding found = other_node(got, expected, name);
  for (size_t i = 0; i < got.children.size() && found.passed(); ++i) {
    bool dict = got.kind == Nest<int64_t>::Kind::kDict;
    std::string child = dict ? cat(name, "['", got.keys[i], "']") : cat(name, "[", i, "]");
    found = structure_difference(got.children[i], expected.children[i], child);
  }
  return found;
}

Judge::Judge(Channel& verifier, JudgeOptions options) : verifier_(verifier), options_(std::move(options)) {}
Judge::~Judge() = default;

void Judge::serve() {
  for (;;) {
    ChannelMessage question;
    if (verifier_.receive(&question, -1) != Channel::Answer::kCame) return;
    Json reply;
    spent_ = {};
    try {
      reply = answer(question.header, std::move(question.payload));
    } catch (const ReplayFailure& failure) {
      reply = {{"finding", to_json(failure.finding)}};
    } catch (const JudgeFault& fault) {
      reply = failed(fault.message);
      if (fault.gpu_is_gone) reply["quarantined"] = fault.message;
    } catch (const ReplayerGone&) {
      reply = failed("the replayer was lost");
      reply["lost"] = true;
    } catch (const c10::OutOfMemoryError&) {
      oracles_.clear();
      oracle_order_.clear();
      oracle_bytes_ = 0;
      reply = failed("the GPU's memory does not hold this task");
    } catch (const std::exception& error) {
      reply = failed(std::string(error.what()).substr(0, 1000));
    }
    std::string lost = lost_context();
    if (!lost.empty()) {
      reply = failed(lost);
      reply.update({{"lost", true}, {"ended", lost}});
    }
    reply["spent"] = spent_.json();
    if (!verifier_.send(reply) || !lost.empty()) return;
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
    auto parsed = parse_plan_file(std::make_shared<const std::string>(payload));
    if (!parsed) throw JudgeFault{"the reference's recording does not parse: " + parsed.why};
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
  staging_ = Staging::create(options_.device);
  Json reply = passed({{"name", "CPU"}, {"memory", 0}});
  int64_t memory = int64_t{8} << 30;
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
    reply["memory"] = total;
    reply["free"] = free;
    if (free < (size_t{4} << 30)) throw JudgeFault{"another program holds the GPU's memory", true};
  }
  oracle_cap_ = static_cast<int64_t>(static_cast<double>(memory) * question.value("memory_share", 0.25));
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

// --- Candidates.

const Plan& Judge::candidate_plan(const Json& question) const {
  if (!candidate_) throw JudgeFault{"the judge was not given a candidate"};
  std::string name = question.at("case").get<std::string>();
  const Plan* plan = candidate_->find(name);
  if (!plan) forged("the recording lacks a case");
  return *plan;
}

void Judge::give_candidate() {
  if (at_work_->has_candidate) return;
  ask({{"do", "load"}, {"slot", "candidate"}}, candidate_bytes_);
  at_work_->inputs.clear();
  at_work_->has_candidate = at_work_->had_candidates = true;
}

void Judge::give_weights(const std::string& slot, const Plan& plan, ReferenceCase& at, int64_t weight_seed) {
  if (plan.init_steps > 0) {
    ask({{"do", "init"}, {"slot", slot}, {"case", plan.name}, {"seed", static_cast<uint64_t>(weight_seed)}});
  }
  std::vector<std::pair<int64_t, at::Tensor>> values;
  std::set<const Parameter*> taken;
  matched_.clear();
  std::vector<const PlanParameter*> rest;
  auto alike = [&](const PlanParameter& own, const Parameter& theirs) {
    const PlanValue& value = plan.values[static_cast<size_t>(own.value)];
    return theirs.value.sizes() == at::IntArrayRef(value.shape) && theirs.value.scalar_type() == to_torch(value.dtype);
  };
  for (const PlanParameter& own : plan.parameters) {
    auto match = std::find_if(at.parameters.begin(), at.parameters.end(),
                              [&](const Parameter& p) { return p.name == own.name && alike(own, p); });
    if (match == at.parameters.end()) {
      rest.push_back(&own);
      continue;
    }
    taken.insert(&*match);
    matched_[own.value] = &*match;
    values.emplace_back(own.value, match->value);
  }
  // Under another name: recognised by what __init__ made of it, in order.
  for (const PlanParameter* own : rest) {
    const PlanValue& value = plan.values[static_cast<size_t>(own->value)];
    auto options = at::TensorOptions(options_.device).dtype(to_torch(value.dtype));
    at::Tensor initial = at::empty(value.shape, options);
    if (own->has_bytes) {
      initial = from_bytes(*own, value, options_.device);
    } else if (plan.init_steps > 0) {
      pull(plan.name, "value", own->value, static_cast<int64_t>(initial.nbytes()),
           [&](int64_t offset, const at::Tensor& chunk) { bytes_of(initial, offset, chunk.numel()).copy_(chunk); });
    } else {
      forged("a parameter without a value");
    }
    for (const Parameter& theirs : at.parameters) {
      if (taken.count(&theirs) || !alike(*own, theirs) || !same_bits(initial, theirs.initial)) continue;
      taken.insert(&theirs);
      matched_[own->value] = &theirs;
      initial = theirs.value;
      break;
    }
    values.emplace_back(own->value, initial);
  }
  push(slot, plan.name, values);
}

void Judge::give_inputs(const std::string& slot, const Plan& plan, ReferenceCase& at) {
  std::vector<std::pair<int64_t, at::Tensor>> values;
  if (plan.inputs.size() != at.inputs.size()) forged("another number of inputs");
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    if ((plan.inputs[i].value >= 0) != at.inputs[i].defined()) forged("other inputs");
    if (plan.inputs[i].value < 0) continue;
    const PlanValue& value = plan.values[static_cast<size_t>(plan.inputs[i].value)];
    if (at.inputs[i].sizes() != at::IntArrayRef(value.shape) || at.inputs[i].scalar_type() != to_torch(value.dtype)) {
      forged("other inputs");
    }
    values.emplace_back(plan.inputs[i].value, at.inputs[i]);
  }
  push(slot, plan.name, values);
}

void Judge::give_inputs_once(const Plan& plan, ReferenceCase& at, int64_t seed, const std::string& values) {
  std::string what = cat(plan.name, "|", seed, "|", values);
  if (at_work_->inputs == what) return;
  at_work_->inputs.clear();
  draw_inputs(at, seed, values);
  give_inputs("candidate", plan, at);
  at_work_->inputs = what;
}

Comparison Judge::collect(const Plan& plan, ReferenceCase& at, const Oracle& oracle, bool whole) {
  Finding difference = structure_difference(plan.outputs, at.plan->outputs);
  if (!difference.passed()) return {difference, INFINITY};
  Json metadata = ask({{"do", "outputs"}, {"slot", "candidate"}, {"case", plan.name}}).at("outputs");
  Comparison worst;
  size_t index = 0;
  std::vector<std::string> names;
  for_each_leaf(plan.outputs, [&](int64_t, const std::string& path) { names.push_back("output" + path); });
  for (const Expectation& expected : oracle.outputs) {
    auto shape = metadata.at(index).at("shape").get<std::vector<int64_t>>();
    Dtype dtype = dtype_from_string(metadata.at(index).at("dtype").get<std::string>()).value();
    if (shape != expected.shape()) {
      return {other_form(Rule::kShape, names[index], Form(shape), Form(expected.shape())), INFINITY};
    }
    if (Dtype wanted = from_torch(expected.dtype()); dtype != wanted) {
      return {other_form(Rule::kDtype, names[index], Form(dtype), Form(wanted)), INFINITY};
    }
    Judgement judgement(expected, names[index]);
    auto size = static_cast<int64_t>(c10::elementSize(expected.dtype()));
    pull(plan.name, "output", static_cast<int64_t>(index), expected.numel() * size,
         [&](int64_t offset, const at::Tensor& chunk) {
           if (whole || !judgement.failed()) judgement.add(offset / size, chunk.view(expected.dtype()));
         });
    Comparison one = judgement.finish();
    if (!one.passed()) return one;
    worst.worst = std::max(worst.worst, one.worst);
    ++index;
  }
  return worst;
}

Finding Judge::wrong_change(const Plan& plan, const ReferenceCase& at, const std::vector<int64_t>& changed) {
  std::set<int64_t> own(changed.begin(), changed.end());
  auto reference_does = [&](int64_t id) { return at.changed && at.changed->count(id) > 0; };
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    if (!own.erase(plan.inputs[i].value) || reference_does(at.plan->inputs[i].value)) continue;
    return input_changed(static_cast<int64_t>(i));
  }
  for (const auto& [id, parameter] : matched_) {
    if (!own.erase(id) || reference_does(parameter->id)) continue;
    Finding found = Rule::kParameterChanged;
    found.told.name = parameter->name;
    return found;
  }
  state_[plan.name].insert(own.begin(), own.end());
  return {};
}

Json Judge::run(const Json& question) {
  if (question.value("additional", false)) {
    std::string why = cannot_do(question);
    if (!why.empty()) return passed({{"skipped", why}});
  }
  ReferenceCase& at = reference(question);
  spent_.mark("reference");
  const Oracle& expected = oracle(question, at);
  spent_.mark("oracle");
  const Plan& plan = candidate_plan(question);
  until_ = now_s() + question.value("deadline_s", kPatience);  // The reference's time is not the candidate's.
  greet();
  give_candidate();
  spent_.mark("load");
  give_weights("candidate", plan, at, question.at("weight_seed").get<int64_t>());
  spent_.mark("weights");
  auto seed = question.at("input_seed").get<int64_t>();
  std::string values = question.value("values", "");
  draw_inputs(at, seed, values);
  give_inputs_once(plan, at, seed, values);
  std::string given = std::exchange(at_work_->inputs, "");
  bool launches = question.value("launches", true);
  spent_.mark("inputs");
  Json done = ask({{"do", "forward"},
                   {"slot", "candidate"},
                   {"case", plan.name},
                   {"launches", launches},
                   {"careful", true},
                   {"seed", question.at("input_seed")},
                   {"poison", question.at("poison")}});
  spent_.mark("forward");
  Comparison comparison = collect(plan, at, expected, /*whole=*/launches);
  spent_.mark("compare");
  Finding found = comparison.finding;
  if (found.passed()) {
    found = wrong_change(plan, at, done.at("changed").get<std::vector<int64_t>>());
    if (found.passed() && done.at("damage").get<int64_t>() > 0) found = Rule::kWritesOutside;
    if (found.passed() && at.mutated.empty()) at_work_->inputs = given;
  }
  Json reply = {{"finding", to_json(found)}};
  if (found.passed() == comparison.passed() && std::isfinite(comparison.worst)) reply["worst"] = comparison.worst;
  ask({{"do", "forget"}, {"slot", "candidate"}, {"case", plan.name}});
  spent_.mark("forget");
  return reply;
}

Json Judge::time(const Json& question) {
  ReferenceCase& at = reference(question);
  const Plan& plan = candidate_plan(question);
  std::string key = question.at("task").get<std::string>();
  auto weight_seed = question.at("weight_seed").get<int64_t>();
  auto seeds = question.at("input_seeds").get<std::vector<int64_t>>();
  CHECK(seeds.size() == 2);
  bool has_candidate = at_work_->has_candidate;
  greet();
  give_candidate();
  if (at_work_->reference != key) {
    ask({{"do", "load"}, {"slot", "reference"}}, tasks_.at(key).bytes);
    at_work_->reference = key;
    give_weights("reference", *at.plan, at, weight_seed);
  }
  spent_.mark("load");
  Json second = question;
  second["input_seed"] = seeds[1];
  const Oracle& expected = oracle(second, at);
  spent_.mark("oracle");
  until_ = now_s() + question.value("deadline_s", kPatience);
  std::set<int64_t> restored = state_[plan.name];
  for (size_t i : at.mutated) restored.insert(plan.inputs[i].value);
  // More readings of what was just timed: all is in place, unless forward changes what it is given or keeps.
  bool again = question.value("again", false) && has_candidate && restored.empty();
  if (!again) {
    give_weights("candidate", plan, at, weight_seed);
    give_inputs_once(plan, at, seeds[1]);
    draw_inputs(at, seeds[0]);
    give_inputs("reference", *at.plan, at);
    spent_.mark("inputs");
  }
  at_work_->inputs.clear();
  forget_inputs(at);
  return_memory();
  Json timed = ask({{"do", "time"},
                    {"case", plan.name},
                    {"reference_case", at.plan->name},
                    {"spec", question.at("spec")},
                    {"first_place", question.value("first_place", 0)},
                    {"again", again},
                    {"restore", restored}});
  spent_.mark("timing");
  Comparison comparison = collect(plan, at, expected);
  spent_.mark("compare");
  Finding found = comparison.finding;
  if (found.passed() && !timed.at("changed").empty()) found = Rule::kKeptState;
  Json reply = {{"finding", to_json(found)}, {"readings", timed.at("readings")}};
  for (const char* key : {"triton_share", "chosen", "reference_bytes", "candidate_bytes"}) {
    if (timed.contains(key)) reply[key] = timed[key];
  }
  // Nothing that has to be read and written from memory can be done faster than the memory is.
  int64_t bytes = 0;
  for (const Expectation& one : expected.outputs) {
    bytes += one.numel() * static_cast<int64_t>(c10::elementSize(one.dtype()));
  }
  double floor = bandwidth_ > 0 ? static_cast<double>(std::max<int64_t>(bytes - cache_bytes_, 0)) / bandwidth_ : 0;
  reply["floor_s"] = floor;
  ask({{"do", "forget"}, {"slot", "candidate"}, {"case", plan.name}});
  return reply;
}

}  // namespace tritonrl
