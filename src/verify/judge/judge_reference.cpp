// SPDX-License-Identifier: Apache-2.0
// The judge's references: weights, inputs, the answers to them, and what the lint makes of a task.
#include <ATen/ATen.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/text.h"
#include "verify/judge/disturbance.h"
#include "verify/judge/judge.h"
#include "verify/judge/task_lint.h"
#include "verify/judge/value_marks.h"
#include "verify/judge/values.h"
#include "verify/trace/init_values.h"

namespace tritonrl {
namespace {

constexpr double kMoved = 0.1;                   // How far parameters that start as constants are moved.
constexpr int64_t kMostKept = int64_t{2} << 30;  // Bytes that nobody uses but the allocator.
constexpr double kVanishes = 1e-15;              // What is left of functions that saturate where inputs are large.
constexpr int kDisturbances = 2;                 // Runs of a reference that are moved by roundings.
constexpr int64_t kBeginning = 1 << 20;          // Elements of an input that tell two seeds apart.

// May an operator change an argument? By its name: in place, or the statistics of a normalisation.
bool writes(const std::string& op) {
  auto parts = split(op, '.');
  return parts.size() > 1 && (parts[1].ends_with('_') || parts[1].find("_norm") != std::string::npos);
}

}  // namespace

void Judge::perturb(ReferenceCase& at, int64_t noise_seed) {
  std::set<void*> done;
  for (Parameter& parameter : at.parameters) {
    at::Tensor& value = parameter.value;
    parameter.initial = value;
    if (!at::isFloatingType(value.scalar_type()) || value.numel() == 0) continue;
    if (!done.insert(value.data_ptr()).second) continue;
    at::Tensor first = value.flatten()[0];
    if (!value.eq(first).all().item<bool>() || !first.isfinite().item<bool>()) continue;
    parameter.initial = value.clone();
    parameter.moved = true;
    Rng stream = Rng(static_cast<uint64_t>(noise_seed)).at(parameter.name);
    seed_device(options_.device, stream.next_u64());
    at::Tensor noise = at::randn(value.sizes(), value.options().dtype(at::kFloat)).mul_(kMoved);
    at::Tensor moved = value.to(at::kFloat).add_(noise);
    if (parameter.name.size() >= 11 && parameter.name.substr(parameter.name.size() - 11) == "running_var") {
      moved = moved.abs_().add_(0.01);
    }
    value.copy_(moved);
  }
}

// What forward writes to and was there before: so that every run begins with the state of the first.
void Judge::keep_state(ReferenceCase& at) {
  const CaseTrace& trace = at.own->trace();
  const size_t forward = trace.init_steps + trace.input_steps;
  auto storage_of = [&](int64_t id) { return trace.values[static_cast<size_t>(id)].storage; };
  std::set<int64_t> written, seen;
  for (size_t i = forward; i < trace.tape.size(); ++i) {
    if (!writes(trace.tape[i].op)) continue;
    for (int64_t id : trace.tape[i].reads) written.insert(storage_of(id));
  }
  if (written.empty()) return;
  auto keep = [&](int64_t id) {
    if (!written.count(storage_of(id)) || !at.own->has(id) || !at.exact->has(id) || !seen.insert(id).second) return;
    for (Tape* tape : {at.own.get(), at.exact.get()}) at.state.push_back({tape->value(id), tape->value(id).clone()});
  };
  for (const TraceParameter& parameter : trace.parameters) keep(parameter.value);
  for (size_t i = 0; i < trace.init_steps; ++i) std::ranges::for_each(trace.tape[i].outs, keep);
}

void Judge::restore_state(ReferenceCase& at) {
  for (auto& [value, before] : at.state) value.copy_(before);
}

// Runs its __init__, and makes the weights that it is run with.
void Judge::set_up(ReferenceCase& at, const Task& task, const CaseTrace& trace) {
  at = {};
  at.own = std::make_unique<Tape>(task.file, trace, TapeOptions{options_.device, false, nullptr});
  at.exact = std::make_unique<Tape>(task.file, trace, TapeOptions{options_.device, true, nullptr});
  for (const TraceParameter& parameter : trace.parameters) {
    if (!parameter.has_bytes) continue;  // Else a constant, made from Python numbers.
    const TraceValue& value = trace.values[static_cast<size_t>(parameter.value)];
    at::Tensor constant = from_bytes(parameter.initial, value.shape, value.dtype, options_.device);
    at.own->bind(parameter.value, constant);
    at.exact->bind(parameter.value, at::isFloatingType(constant.scalar_type()) ? constant.to(at::kDouble) : constant);
  }
  auto run_init = [&](std::vector<Tape::Pin> pins) {
    seed_device(options_.device, static_cast<uint64_t>(task.weight_seed));
    at.own->run_init(std::move(pins));
  };
  run_init({});
  std::vector<int64_t> ids;
  for (const TraceParameter& parameter : trace.parameters) {
    if (parameter.has_bytes) continue;
    at.parameters.push_back({parameter.name, {}, at.own->value(parameter.value), parameter.value});
    ids.push_back(parameter.value);
  }
  perturb(at, task.noise_seed);
  const InitValues made = init_values(trace);
  if (std::ranges::any_of(at.parameters, &Parameter::moved) && makes_more_of(trace, made, ids)) {
    std::vector<Tape::Pin> pins;
    for (const Parameter& parameter : at.parameters) {
      auto whole = made.whole.find(parameter.id);
      if (whole != made.whole.end()) pins.push_back({parameter.id, whole->second, parameter.value.clone()});
    }
    run_init(std::move(pins));
    for (Parameter& parameter : at.parameters) {
      parameter.value = at.own->value(parameter.id);
      if (!parameter.moved) parameter.initial = parameter.value;
    }
  }
  auto also_exact = [&](int64_t id) {
    if (!at.own->has(id)) return;
    const at::Tensor& value = at.own->value(id);
    at.exact->bind(id, at::isFloatingType(value.scalar_type()) ? value.to(at::kDouble) : value.clone());
  };
  for (size_t i = 0; i < trace.init_steps; ++i) std::ranges::for_each(trace.tape[i].outs, also_exact);
  std::ranges::for_each(ids, also_exact);
  keep_state(at);
}

Judge::ReferenceCase& Judge::reference(const Json& question) {
  std::string key = question.at("task").get<std::string>(), name = question.at("case").get<std::string>();
  auto it = tasks_.find(key);
  if (it == tasks_.end()) throw JudgeFault{"the judge was not given this task"};
  Task& task = it->second;
  auto weight_seed = question.at("weight_seed").get<int64_t>(), noise_seed = question.at("noise_seed").get<int64_t>();
  if (task.weight_seed != weight_seed || task.noise_seed != noise_seed) task.cases.clear();
  task.weight_seed = weight_seed;
  task.noise_seed = noise_seed;
  ReferenceCase& at = task.cases[name];
  if (at.trace) return at;
  const CaseTrace* trace = task.file.find(name);
  if (!trace) throw JudgeFault{"the reference has no case " + name};
  for (int attempt = 0;; ++attempt) {
    try {
      set_up(at, task, *trace);
      break;
    } catch (const ReplayFailure& failure) {
      if (failure.finding.outcome() != Outcome::kOutOfMemory || attempt > 0) {
        throw JudgeFault{human_text(failure.finding), failure.context_lost, failure.finding.outcome()};
      }
    } catch (const std::exception& error) {
      if (!is_out_of_memory(error) || attempt > 0) throw;
    }
    make_room(question);
  }
  at.trace = trace;
  return at;
}

void Judge::draw_inputs(ReferenceCase& at, int64_t seed, const std::string& values) {
  if (at.input_seed == seed && at.values == values) return;
  forget_inputs(at);
  seed_device(options_.device, static_cast<uint64_t>(seed));
  at.own->run_inputs();
  for (const TraceInput& input : at.trace->inputs) {
    at.inputs.push_back(input.value < 0 ? at::Tensor() : at.own->value(input.value));
    if (!values.empty() && input.value >= 0) at.inputs.back() = transformed(values, at.inputs.back());
  }
  at.own->forget_inputs();
  at.input_seed = seed;
  at.values = values;
}

void Judge::forget_inputs(ReferenceCase& at) {
  at.inputs.clear();
  at.input_seed = -1;
}

// What the allocator keeps for later is memory that the replayer may need now.
void Judge::return_memory() {
  if (!options_.device.is_cuda()) return;
  using c10::CachingAllocator::StatType;
  auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(options_.device.index());
  auto all = static_cast<size_t>(StatType::AGGREGATE);
  if (stats.reserved_bytes[all].current - stats.allocated_bytes[all].current > kMostKept) {
    c10::cuda::CUDACachingAllocator::emptyCache();
  }
}

std::vector<at::Tensor> Judge::run_reference(ReferenceCase& at, int64_t seed, bool exact) {
  Tape& tape = exact ? *at.exact : *at.own;
  for (size_t i = 0; i < at.inputs.size(); ++i) {
    if (!at.inputs[i].defined()) continue;
    bool written = std::count(at.mutated.begin(), at.mutated.end(), i) > 0;
    at::Tensor bound = at.inputs[i];
    if (exact && at::isFloatingType(bound.scalar_type())) bound = bound.to(at::kDouble);
    if (written && bound.is_same(at.inputs[i])) bound = bound.clone();
    tape.bind(at.trace->inputs[i].value, bound);
  }
  seed_device(options_.device, static_cast<uint64_t>(seed));
  tape.run_forward();
  auto outputs = tape.outputs();
  for (size_t i = 0; i < at.inputs.size(); ++i) {
    if (at.inputs[i].defined()) tape.bind(at.trace->inputs[i].value, exact ? at::Tensor() : at.inputs[i]);
  }
  if (!exact) tape.forget_inputs();
  return outputs;
}

// Runs the reference once and sees what it changes, if that is not known.
void Judge::find_changes(ReferenceCase& at, int64_t seed) {
  if (at.changed) return;
  for (size_t i = 0; i < at.inputs.size(); ++i) {
    if (at.inputs[i].defined()) at.own->bind(at.trace->inputs[i].value, at.inputs[i]);
  }
  uint64_t key = new_mark_key();
  ValueMarks before = mark_values(*at.own, key);
  seed_device(options_.device, static_cast<uint64_t>(seed));
  restore_state(at);
  at.own->run_forward();
  at.own->forget_forward();
  std::vector<int64_t> changed = changed_values(before, mark_values(*at.own, key, &before));
  at.changed.emplace(changed.begin(), changed.end());
  at.mutated.clear();
  for (size_t i = 0; i < at.inputs.size(); ++i) {
    if (at.inputs[i].defined() && at.changed->count(at.trace->inputs[i].value)) at.mutated.push_back(i);
  }
  at.own->forget_inputs();
  if (!at.mutated.empty()) {
    forget_inputs(at);
    draw_inputs(at, seed, at.values);
  }
}

Judge::Oracle Judge::make_oracle(ReferenceCase& at, const std::vector<int64_t>& earlier, int64_t seed,
                                 Precision precision, bool hold_against_itself) {
  find_changes(at, seed);
  auto run = [&](bool exact, int64_t draws) {
    restore_state(at);
    const std::string values = at.values;
    for (int64_t one : at.state.empty() ? std::vector<int64_t>() : earlier) {
      draw_inputs(at, one, values);
      run_reference(at, one, exact);
      (exact ? at.exact : at.own)->forget_forward();
    }
    draw_inputs(at, seed, values);
    return run_reference(at, draws, exact);
  };
  Oracle made;
  size_t zeros = 0;
  std::vector<at::Tensor> reference = run(false, seed), truth;
  if (at.exact_fits) {
    try {
      truth = run(true, seed);
    } catch (const ReplayFailure& failure) {
      at.exact->forget_forward();
      if (failure.finding.outcome() == Outcome::kOutOfMemory) throw;
      at.exact_fits = false;  // An operator without float64.
    }
  }
  if (!at.exact_fits) {  // The next best: its own dtypes, without TF32.
    at::globalContext().setAllowTF32CuDNN(false);
    truth = run(false, seed);
    at::globalContext().setAllowTF32CuDNN(true);
  }
  at.own->forget_forward();
  at.exact->forget_forward();
  for (size_t i = 0; i < reference.size(); ++i) {
    at::Tensor t = std::exchange(truth[i], at::Tensor());
    if (at::isFloatingType(reference[i].scalar_type())) t = t.to(at::kDouble);
    made.outputs.emplace_back(reference[i], t, precision);
    if (hold_against_itself && made.outputs.back().is_zero()) ++zeros;
    if (hold_against_itself) {
      Judgement itself(made.outputs.back(), "output");
      itself.add(0, reference[i].reshape({-1}));
      made.sound = made.sound && itself.finish().passed();
    }
    made.bytes += made.outputs.back().bytes();
    reference[i] = at::Tensor();
  }
  if (precision != Precision::kKernelBench) {
    allow_for_rounding(
        at, [&](int64_t draws) { return run(false, draws); }, seed, precision, hold_against_itself, &made);
  }
  if (at.values == "large") {
    for (Expectation& expected : made.outputs) expected.allow_within(kVanishes);
  }
  restore_state(at);
  if (zeros > 0 && zeros == reference.size()) made.sound = false;  // No comparison relative to zero says anything.
  return made;
}

void Judge::allow_for_rounding(ReferenceCase& at, const std::function<std::vector<at::Tensor>(int64_t)>& run,
                               int64_t seed, Precision precision, bool another, Oracle* made) {
  using Kind = Disturbance::Kind;
  std::vector<Kind> kinds(kDisturbances, Kind::kRoundings);
  bool products = precision == Precision::kProducts || precision == Precision::kOtherProducts;
  if (products) kinds.insert(kinds.end(), {Kind::kCut, Kind::kRounded, Kind::kScattered});
  Rng seeds = Rng(static_cast<uint64_t>(seed)).at("disturbance");
  auto disturbed = [&](Kind kind, const std::function<void(Expectation&, const at::Tensor&)>& use) {
    Disturbance disturbance(*at.trace, kind);
    at.own->set_filter(&disturbance);
    try {
      auto outputs = run(static_cast<int64_t>(seeds.next_u64() >> 1));
      for (size_t k = 0; k < outputs.size(); ++k) use(made->outputs[k], std::exchange(outputs[k], at::Tensor()));
    } catch (const ReplayFailure& failure) {
      if (failure.context_lost) throw;
      short_of_memory_ |= failure.finding.outcome() == Outcome::kOutOfMemory;
      at.disturbed_fits = false;
    } catch (const std::exception& error) {
      if (!is_out_of_memory(error)) throw;
      short_of_memory_ = true;
      at.disturbed_fits = false;
    }
    at.own->set_filter(nullptr);
    at.own->forget_forward();
  };
  for (size_t i = 0; i < kinds.size() && at.disturbed_fits; ++i) {
    disturbed(kinds[i], [](Expectation& expected, const at::Tensor& output) { expected.allow_for(output); });
  }
  // An honest computation beyond what those allow joins them. (No case is left out for it: who is held to products in
  // TF32 is the candidate's choice.) Whole numbers are held against nothing.
  kinds = {Kind::kRoundings};
  if (products) kinds.push_back(Kind::kScattered);
  for (size_t i = 0; i < kinds.size() && at.disturbed_fits && another; ++i) {
    disturbed(kinds[i], [&](Expectation& expected, const at::Tensor& output) {
      if (!at::isFloatingType(output.scalar_type())) return;
      Judgement honest(expected, "output");
      honest.add(0, output.reshape({-1}));
      if (!honest.finish().passed()) expected.allow_for(output);
    });
  }
  if (at.disturbed_fits) return;
  for (Expectation& expected : made->outputs) expected.allow_without();
}

void Judge::make_room(const Json& question) {
  std::string key = question.at("task").get<std::string>(), name = question.at("case").get<std::string>();
  oracles_.clear();
  oracle_order_.clear();
  oracle_bytes_ = 0;
  for (auto& [other, task] : tasks_) {
    for (auto it = task.cases.begin(); it != task.cases.end();) {
      it = other == key && it->first == name ? std::next(it) : task.cases.erase(it);
    }
  }
  if (at_work_) {
    ask({{"do", "trim"}});
    at_work_->reference.clear();
  }
  if (options_.device.is_cuda()) c10::cuda::CUDACachingAllocator::emptyCache();
}

const Judge::Oracle& Judge::oracle(const Json& question, ReferenceCase& at) {
  auto seed = question.at("input_seed").get<int64_t>();
  std::string values = question.value("values", "");
  int precision = question.value("precision", 0);
  std::string key =
      cat(question.at("task").get<std::string>(), "|", at.trace->name, "|", question.at("weight_seed").get<int64_t>(),
          "|", question.at("noise_seed").get<int64_t>(), "|", seed, "|", values, "|", precision);
  auto earlier = question.value("earlier_seeds", std::vector<int64_t>());
  if (!at.state.empty()) {
    for (int64_t one : earlier) key += cat("|after ", one);
  }
  if (question.value("alone", false) && !(at.exact_fits && at.disturbed_fits)) {
    at.exact_fits = at.disturbed_fits = true;
    forget_oracle(key);
  }
  Oracle made;
  for (int attempt = 0;; ++attempt) {
    try {
      if (auto found = oracles_.find(key); found != oracles_.end()) return found->second;
      draw_inputs(at, seed, values);
      made = make_oracle(at, earlier, seed, static_cast<Precision>(precision), question.value("additional", false));
      break;
    } catch (const ReplayFailure& failure) {
      if (failure.finding.outcome() != Outcome::kOutOfMemory || attempt == 2) {
        throw JudgeFault{human_text(failure.finding), failure.context_lost, failure.finding.outcome()};
      }
    } catch (const std::exception& error) {
      if (attempt == 2 || !is_out_of_memory(error)) throw;
    }
    at.own->forget_forward();
    at.exact->forget_forward();
    forget_inputs(at);
    if (attempt == 1) {
      short_of_memory_ = true;
      at.exact_fits = false;
    }
    make_room(question);
  }
  while (!oracle_order_.empty() && oracle_bytes_ + made.bytes > oracle_cap_) {
    forget_oracle(std::string(oracle_order_.front()));
  }
  oracle_bytes_ += made.bytes;
  oracle_order_.push_back(key);
  return_memory();
  return oracles_[key] = std::move(made);
}

void Judge::forget_oracle(const std::string& key) {
  auto found = oracles_.find(key);
  if (found == oracles_.end()) return;
  oracle_bytes_ -= found->second.bytes;
  oracles_.erase(found);
  oracle_order_.remove(key);
}

std::string Judge::cannot_do(const Json& question) {
  for (;;) {
    std::string why;
    try {
      return oracle(question, reference(question)).sound ? "" : "the reference fails its own comparison";
    } catch (const JudgeFault& fault) {
      if (fault.gpu_is_gone) throw;
      short_of_memory_ |= fault.reference == Outcome::kOutOfMemory;
      why = cat("the reference fails: ", fault.message);
    } catch (const ReplayFailure& failure) {
      if (failure.context_lost) throw;
      short_of_memory_ |= failure.finding.outcome() == Outcome::kOutOfMemory;
      why = cat("the reference fails: ", human_text(failure.finding));
    } catch (const std::exception& error) {
      if (!is_out_of_memory(error)) throw;
      short_of_memory_ = true;
      why = "the memory does not hold the reference";
    }
    if (!at_work_ || !at_work_->had_candidates) return why;
    replace_replayer();  // Whatever a candidate left there must not be the reason.
  }
}

Json Judge::lint(const Json& question) {
  ReferenceCase& at = reference(question);
  auto seeds = question.at("input_seeds").get<std::vector<int64_t>>();
  CHECK(seeds.size() == 2);
  Json first = question;
  first["input_seed"] = seeds[0];
  const Oracle& expected = oracle(first, at);
  draw_inputs(at, seeds[0]);
  DeviceLintRequest request;
  request.tape = at.own.get();
  request.expected = &expected.outputs;
  for_each_leaf(at.trace->outputs, [&](int64_t, const std::string& path) { request.names.push_back("output" + path); });
  std::vector<at::Tensor> beginnings;  // Of the inputs.
  bool any = false, same = true;
  request.run = [&](bool other_inputs) {
    int64_t seed = seeds[other_inputs ? 1 : 0];
    draw_inputs(at, seed);
    for (size_t i = 0; i < at.inputs.size(); ++i) {
      if (!at.inputs[i].defined()) continue;
      at::Tensor flat = at.inputs[i].flatten(), part = flat.narrow(0, 0, std::min(flat.numel(), kBeginning));
      if (beginnings.size() <= i) beginnings.resize(i + 1);
      if (!beginnings[i].defined()) beginnings[i] = part.clone();
      any = true;
      if (other_inputs) same = same && same_bits(part, beginnings[i]);
    }
    restore_state(at);
    auto outputs = run_reference(at, seed, false);
    at.own->forget_forward();
    return outputs;
  };
  bool drops = question.value("drops", true);
  request.enough = [this, drops] { return !drops || now_s() > until_; };
  DeviceLint lint = lint_on_device(request);
  if (any && same) {
    lint.flags.erase(std::remove_if(lint.flags.begin(), lint.flags.end(),
                                    [](const auto& flag) { return flag.first == "input_independent"; }),
                     lint.flags.end());
    lint.add("seed_invariant", "get_inputs() gives the same tensors for two seeds");
  }
  return {{"finding", to_json(Finding())},
          {"flags", lint.flags},
          {"drops_tried", lint.drops_tried},
          {"drops_impossible", lint.drops_impossible}};
}

}  // namespace tritonrl
