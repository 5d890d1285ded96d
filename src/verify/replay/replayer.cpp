// SPDX-License-Identifier: Apache-2.0
#include "verify/replay/replayer.h"

#include <ATen/ATen.h>
#include <cuda_runtime_api.h>

#include "base/check.h"
#include "base/error.h"
#include "base/text.h"
#include "verify/execute/timing_json.h"
#include "verify/judge/spent.h"
#include "verify/judge/value_marks.h"
#include "verify/replay/guarded_memory.h"
#include "verify/replay/own_kernels.h"
#include "verify/replay/timing.h"

namespace tritonrl {
namespace {

std::string text(const Json& json, const char* key) { return json.at(key).get<std::string>(); }

std::vector<double> seconds_of_steps(Tape& tape) {
  return time_steps(tape.trace().tape.size(), [&](auto mark) {
    tape.set_observer(mark);
    tape.run_forward();
    tape.set_observer(nullptr);
  });
}

// Launch n of those with several configurations takes choices[n % size]; none given: the first.
void choose(Tape& tape, const std::vector<size_t>& choices) {
  const auto& steps = tape.trace().tape;
  size_t number = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!steps[i].is_launch || steps[i].choices.size() <= 1) continue;
    tape.choose(i, choices.empty() ? 0 : choices[number % choices.size()] % steps[i].choices.size());
    ++number;
  }
}

// The fastest of an autotuner's configurations, one launch step at a time.
Json tune(Tape& candidate, const std::function<void()>& restore) {
  Json chosen = Json::array();
  const CaseTrace& trace = candidate.trace();
  for (size_t i = 0; i < trace.tape.size(); ++i) {
    size_t count = trace.tape[i].is_launch ? trace.tape[i].choices.size() : 0;
    if (count <= 1) continue;
    size_t best = 0;
    double best_s = 0;
    for (size_t choice = 0; choice < count; ++choice) {
      candidate.choose(i, choice);
      double total = 0;
      for (int repeat = 0; repeat < 4; ++repeat) {
        restore();
        auto seconds = seconds_of_steps(candidate);
        if (repeat > 0) total += seconds[i];
      }
      if (choice == 0 || total < best_s) {
        best = choice;
        best_s = total;
      }
    }
    candidate.choose(i, best);
    chosen.push_back({{"step", i}, {"choice", best}});
  }
  return chosen;
}

// Of a tape's device time, the share of its Triton launches.
double triton_share(Tape& tape, const std::function<void()>& restore) {
  double launches_s = 0, all_s = 0;
  for (int repeat = 0; repeat < 3; ++repeat) {
    launches_s = all_s = 0;
    restore();
    auto seconds = seconds_of_steps(tape);
    for (size_t i = 0; i < seconds.size(); ++i) {
      all_s += seconds[i];
      if (tape.trace().tape[i].is_launch) launches_s += seconds[i];
    }
  }
  return all_s > 0 ? launches_s / all_s : 0.0;
}

// Bytes that forward takes at most beyond what it is given. Not on its first run, in which libraries set themselves up.
int64_t peak_of_forward(Tape& tape) {
  for (int run = 0;; ++run) {
    tape.forget_forward();
    size_t before = GuardedMemory::live_bytes();
    GuardedMemory::reset_peak();
    tape.run_forward();
    if (run == 1) return static_cast<int64_t>(GuardedMemory::peak_bytes() - before);
  }
}

// What the runs of a candidate gave while they were timed: a number an output, taken on the device between the runs.
class RunSums {
 public:
  // Queues.
  void add(const std::vector<at::Tensor>& outputs) {
    if (outputs.empty()) return;
    at::NoGradGuard no_grad;
    auto width = static_cast<int64_t>(outputs.size());
    if (used_ == kRuns || pieces_.empty()) {
      pieces_.push_back(at::empty({kRuns, width}, outputs[0].options().dtype(at::kDouble)));
      used_ = 0;
    }
    at::Tensor row = pieces_.back()[used_++];
    for (int64_t i = 0; i < width; ++i) {
      at::Tensor output = outputs[static_cast<size_t>(i)];
      bool floating = at::isFloatingType(output.scalar_type());
      if (floating && output.element_size() < 2) output = output.to(at::kFloat);  // No sums of eight bits.
      row[i].copy_(floating ? at::linalg_vector_norm(output, 1, {}, false, at::kDouble) : at::sum(output, at::kDouble));
    }
  }
  // Of all runs but the last, those that are not like it. Waits for the device.
  int64_t unlike_the_last() const {
    std::vector<std::vector<double>> runs;
    for (const at::Tensor& piece : pieces_) {
      at::Tensor host = piece.narrow(0, 0, &piece == &pieces_.back() ? used_ : kRuns).cpu();
      const auto* at = host.const_data_ptr<double>();
      for (int64_t i = 0; i < host.size(0); ++i, at += host.size(1)) runs.emplace_back(at, at + host.size(1));
    }
    int64_t unlike = 0;
    for (const auto& run : runs) unlike += !alike_runs(run, runs.back());
    return unlike;
  }

 private:
  static constexpr int64_t kRuns = 1024;
  std::vector<at::Tensor> pieces_;
  int64_t used_ = 0;
};

Json failed(const Finding& finding, bool lost) {
  return {{"failure", {{"finding", to_json(finding)}, {"lost", lost}}}};
}

}  // namespace

void Replayer::serve() {
  for (;;) {
    ChannelMessage question;
    if (judge_.receive(&question, -1) != Channel::Answer::kCame) return;
    Json reply;
    bool lost = false;
    try {
      reply = answer(question.header, std::move(question.payload));
      reply["ok"] = true;
    } catch (const ReplayFailure& failure) {
      lost = failure.context_lost;
      reply = failed(failure.finding, lost);
    } catch (const c10::OutOfMemoryError& error) {
      reply = failed({Rule::kOutOfMemory, "the GPU's memory is full"}, false);
    } catch (const std::exception& error) {
      lost = true;
      reply = failed({Rule::kVerifierFailed, error.what()}, true);
    }
    if (!judge_.send(reply) || lost) return;
  }
}

Json Replayer::answer(const Json& question, std::string payload) {
  std::string what = text(question, "do");
  if (what == "hello") return hello(question);
  if (what == "load") return load(question, std::move(payload));
  if (what == "init") return init(question);
  if (what == "put") return put(question);
  if (what == "forward") return forward(question);
  if (what == "get") return get(question);
  if (what == "outputs") return outputs(question);
  if (what == "time") return time(question);
  if (what == "bandwidth") return bandwidth();
  if (what == "measure") return measure(question);
  if (what == "forget") {
    slot(question).images.clear();
    tape(question).forget_forward();
    return Json::object();
  }
  if (what == "trim") {
    slots_.erase("reference");
    for (auto& [name, slot] : slots_) slot.images.clear();
    if (device_.is_cuda()) GuardedMemory::trim();
    return Json::object();
  }
  if (what == "drop") {
    slots_.erase(text(question, "slot"));
    return Json::object();
  }
  CHECK(false) << "the judge asked for " << what;
  return {};
}

Json Replayer::hello(const Json& question) {
  size_t free = 0, total = 0;
  if (device_.is_cuda()) {
    cudaMemGetInfo(&free, &total);
    GuardedMemory::install(question.value("memory_bytes", total / 10 * 9));
    OwnKernels::get();
  }
  staging_ = Staging::open(device_, text(question, "staging"));
  return {{"memory", total}};
}

Json Replayer::load(const Json& question, std::string payload) {
  std::string name = text(question, "slot");
  slots_.erase(name);
  auto parsed = parse_bundle(std::make_shared<const std::string>(std::move(payload)));
  if (!parsed) throw ReplayFailure{{Rule::kForgedResult, parsed.why}};
  Slot& slot = slots_[name];
  slot.file = std::move(*parsed.value);
  if (device_.is_cuda()) slot.launcher = std::make_unique<CudaLauncher>();
  return Json::object();
}

Replayer::Slot& Replayer::slot(const Json& question) {
  auto it = slots_.find(text(question, "slot"));
  CHECK(it != slots_.end()) << "nothing is loaded";
  return it->second;
}

Tape& Replayer::tape(const Json& question) {
  Slot& s = slot(question);
  std::string name = text(question, "case");
  auto& tape = s.tapes[name];
  if (!tape) {
    const CaseTrace* trace = s.file.find(name);
    CHECK(trace) << "no such case";
    tape = std::make_unique<Tape>(s.file, *trace, TapeOptions{device_, false, s.launcher.get()});
  }
  return *tape;
}

void Replayer::wait() {
  if (device_.is_cuda()) CudaDriver::get().check(CudaDriver::get().synchronize(nullptr), "running");
}

Json Replayer::init(const Json& question) {
  Tape& t = tape(question);
  std::vector<Tape::Pin> pins;
  for (const Json& pin : question.value("pins", Json::array())) {
    auto id = pin.at(0).get<int64_t>();
    pins.push_back({id, pin.at(1).get<size_t>(), t.value(id).clone()});
  }
  seed_device(device_, question.at("seed").get<uint64_t>());
  t.run_init(std::move(pins));
  wait();
  return Json::object();
}

Json Replayer::put(const Json& question) {
  Tape& t = tape(question);
  for (const Json& item : question.at("items")) {
    auto id = item.at("value").get<int64_t>();
    const TraceValue& value = t.trace().values.at(static_cast<size_t>(id));
    if (!t.has(id)) {
      auto options = at::TensorOptions(device_).dtype(to_torch(value.dtype));
      t.bind(id, at::empty_strided(value.shape, value.stride, options));
    }
    at::Tensor target = t.value(id);
    auto bytes = item.at("bytes").get<int64_t>(), offset = item.at("offset").get<int64_t>();
    at::Tensor source = staging_->bytes(item.at("at").get<int64_t>(), bytes);
    if (target.is_contiguous()) {
      if (bytes > 0) bytes_of(target, offset, bytes).copy_(source);
      continue;
    }
    // Another layout: collect the row-major bytes, and copy when they are whole.
    at::Tensor& image = slot(question).images[-1 - id];
    if (!image.defined()) image = at::empty(target.sizes(), target.options());
    if (bytes > 0) bytes_of(image, offset, bytes).copy_(source);
    if (offset + bytes == static_cast<int64_t>(image.nbytes())) {
      target.copy_(image);
      slot(question).images.erase(-1 - id);
    }
  }
  wait();
  return Json::object();
}

Json Replayer::forward(const Json& question) {
  Tape& t = tape(question);
  slot(question).images.clear();
  t.forget_forward();
  if (device_.is_cuda()) {
    GuardedMemory::set_poisoning(true);
    GuardedMemory::new_poison(question.at("poison").get<uint32_t>());
    GuardedMemory::damage();  // What others left behind, in buffers that were freed since, is not this run's.
  }
  seed_device(device_, question.value("seed", uint64_t{0}));
  t.set_careful(question.value("careful", false));
  choose(t, question.value("choices", std::vector<size_t>()));
  uint64_t key = new_mark_key();
  ValueMarks before = mark_values(t, key);
  t.run_forward(question.value("launches", true));
  wait();
  return {{"damage", device_.is_cuda() ? GuardedMemory::damage() : 0},
          {"changed", changed_values(before, mark_values(t, key, &before))}};
}

Json Replayer::outputs(const Json& question) {
  Json list = Json::array();
  for (const at::Tensor& tensor : tape(question).outputs()) {
    list.push_back({{"shape", tensor.sizes().vec()}, {"dtype", to_string(from_torch(tensor.scalar_type()))}});
  }
  return {{"outputs", list}};
}

Json Replayer::get(const Json& question) {
  Tape& t = tape(question);
  std::vector<at::Tensor> outputs;
  for (const Json& item : question.at("items")) {
    bool is_output = item.contains("output");
    auto key = item.at(is_output ? "output" : "value").get<int64_t>();
    if (is_output && outputs.empty()) outputs = t.outputs();
    at::Tensor source = is_output ? outputs.at(static_cast<size_t>(key)) : t.value(key);
    if (!source.is_contiguous()) {
      at::Tensor& image = slot(question).images[is_output ? 2 * key : 2 * key + 1];
      if (!image.defined()) image = source.contiguous();
      source = image;
    }
    auto bytes = item.at("bytes").get<int64_t>();
    if (bytes == 0) continue;
    staging_->bytes(item.at("at").get<int64_t>(), bytes)
        .copy_(bytes_of(source, item.at("offset").get<int64_t>(), bytes));
  }
  wait();
  return Json::object();
}

Json Replayer::bandwidth() {
  GuardedMemory::set_poisoning(false);
  double bandwidth = peak_bandwidth();
  GuardedMemory::set_poisoning(true);
  GuardedMemory::trim();
  return {{"bandwidth", bandwidth}};
}

Json Replayer::measure(const Json& question) {
  if (!device_.is_cuda()) throw ReplayFailure{{Rule::kNotReplayable, "timing needs a GPU"}};
  GuardedMemory::set_poisoning(false);
  Json noise = Json::array();
  for (const auto& repeats : measure_noise(reading_spec_from_json(question.at("spec")))) {
    Json list = Json::array();
    for (const auto& readings : repeats) list.push_back(to_json(readings));
    noise.push_back(std::move(list));
  }
  GuardedMemory::set_poisoning(true);
  GuardedMemory::trim();
  return {{"noise", noise}};
}

Json Replayer::time(const Json& question) {
  if (!device_.is_cuda()) throw ReplayFailure{{Rule::kNotReplayable, "timing needs a GPU"}};
  Json candidate_at = {{"slot", "candidate"}, {"case", question.at("case")}};
  Tape& candidate = tape(candidate_at);
  Tape& reference = tape({{"slot", "reference"}, {"case", question.at("reference_case")}});
  candidate.forget_forward();
  candidate.set_careful(false);
  reference.set_careful(false);
  GuardedMemory::set_poisoning(false);

  uint64_t key = new_mark_key();
  ValueMarks before = mark_values(candidate, key);
  std::map<int64_t, at::Tensor> originals;
  for (const Json& id : question.value("restore", Json::array())) {
    originals[id.get<int64_t>()] = candidate.value(id.get<int64_t>()).clone();
    before.erase(id.get<int64_t>());
  }
  auto restore = [&] {
    for (auto& [id, original] : originals) candidate.value(id).copy_(original);
  };
  Json reply = Json::object();
  Spent spent;
  if (!question.value("again", false)) {
    reply["chosen"] = tune(candidate, restore);
    spent.mark("tuning");
    reply["triton_share"] = triton_share(candidate, restore);
    spent.mark("share");
    reply["reference_bytes"] = peak_of_forward(reference);
    reply["candidate_bytes"] = peak_of_forward(candidate);
    spent.mark("peak memory");
  }

  TimingRequest request;
  request.reference = [&] { reference.run_forward(); };
  request.candidate = [&] { candidate.run_forward(); };
  RunSums sums;
  request.before = [&](bool of_reference) {
    // What the run before this one made is freed first, or it would lie beside this one, unswept.
    (of_reference ? reference : candidate).forget_forward();
    GuardedMemory::sweep();
  };
  request.after = [&](bool of_reference) {
    if (!of_reference) sums.add(candidate.outputs());
  };
  if (!originals.empty()) request.restore = restore;
  bool room = true;
  double moving_s = 0;
  request.move = [&] {
    double began = now_s();
    candidate.forget_forward();
    reference.forget_forward();
    GuardedMemory::rotate();
    // Where there is no room to move in, what stays is still timed.
    room = room && reference.relocate() && candidate.relocate();
    moving_s += now_s() - began;
  };
  request.spec = reading_spec_from_json(question.at("spec"));
  request.first_place = question.value("first_place", int64_t{0});
  auto readings = take_readings(request);
  if (request.restore) {
    request.restore();
    candidate.run_forward();
    sums.add(candidate.outputs());
    wait();
  }
  GuardedMemory::set_poisoning(true);
  reply["unlike"] = sums.unlike_the_last();
  reply["changed"] = changed_values(before, mark_values(candidate, key, &before));
  spent.mark("readings");
  spent.add("readings", -moving_s);
  spent.add("moving", moving_s);
  reply["readings"] = to_json(readings);
  reply["spent"] = spent.json();
  return reply;
}

}  // namespace tritonrl
