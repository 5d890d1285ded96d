// SPDX-License-Identifier: Apache-2.0
#include "verify/execute/execution.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "verify/execute/choices.h"
#include "verify/trace/specialisation.h"
#include "verify/trace/trace_graph.h"

namespace tritonrl {
namespace {

int64_t elements(const CaseTrace& trace, int64_t value) {
  int64_t n = 1;
  for (int64_t size : trace.values[static_cast<size_t>(value)].shape) n *= size;
  return n;
}

int64_t input_elements(const CaseTrace& trace) {
  int64_t sum = 0;
  for (const TraceInput& input : trace.inputs) sum += input.value < 0 ? 0 : elements(trace, input.value);
  return sum;
}

int64_t output_elements(const CaseTrace& trace) {
  int64_t sum = 0;
  visit_leaves(trace.outputs, [&](int64_t id) { sum += elements(trace, id); });
  return sum;
}

constexpr double kSmallS = 0.5;  // What the original case may take for the additional ones to be run together.

// Of what a task without arithmetic gives, the share that launches have to write.
constexpr double kLeastWritten = 0.5;
constexpr size_t kMoreCalls = 4;       // Kernels that keep something are called 3 to 6 times.
constexpr double kMostMore = 1.5;      // How much more than the first call a further one may take, to be let off.
constexpr double kMostPrograms = 2.0;  // ... and another configuration than the first.
constexpr double kLeastTime = 0.1;     // ... and of its device time, the share that is theirs.

bool alike(const TraceValue& a, const TraceValue& b) { return a.shape == b.shape && a.dtype == b.dtype; }

// What a candidate was recorded with must be what it was asked to be recorded with. Throws Tainted.
void check_case(const CaseTrace& trace, const CaseTrace& reference, size_t calls = 1) {
  auto value = [](const CaseTrace& of, int64_t id) -> const TraceValue& { return of.values[static_cast<size_t>(id)]; };
  if (trace.input_steps > 0) throw Tainted{"the trace makes its own inputs"};
  const size_t inputs = reference.inputs.size();
  if (trace.inputs.size() != calls * inputs) throw Tainted{"the trace has another number of inputs"};
  for (size_t i = 0; i < trace.inputs.size(); ++i) {
    int64_t own = trace.inputs[i].value, theirs = reference.inputs[i % inputs].value;
    if ((own >= 0) != (theirs >= 0)) throw Tainted{"the trace has other inputs"};
    if (own >= 0 && !alike(value(trace, own), value(reference, theirs))) throw Tainted{"the trace has other inputs"};
  }
}

}  // namespace

Execution::Execution(const ExecutionTools& tools, const Task& task, std::vector<CaseSpec> cases, WeightSeeds weights,
                     Rng inputs, Rng poison)
    : tools_(tools),
      task_(task),
      cases_(std::move(cases)),
      weights_(weights),
      inputs_(inputs),
      poison_(poison),
      executor_(tools.executor()),
      target_(tools.target ? tools.target() : TargetGpu()) {
  CHECK(!cases_.empty()) << "a task without cases";
}

int64_t Execution::input_seed(const CaseSpec& spec, int64_t index) const {
  Rng stream = inputs_.at(spec.name).at(static_cast<uint64_t>(index));
  return static_cast<int64_t>(stream.next_u64() & 0x7fffffffffffff);
}

// The task itself failed, which is of no consequence to the candidate.
Finding Execution::unusable(const std::string& why) {
  task_failure_ = why;
  return {Rule::kReferenceFailed, cat("task ", task_.id, " cannot be judged: its reference failed: ", why)};
}

Finding Execution::end(const JudgeAnswer& answer) {
  lost_ |= answer.lost;
  if (!answer.ended.empty()) tools_.references->blame(reference_->key, answer.ended);
  bool memory = answer.finding.rule() == Rule::kVerifierMemory;  // Which others may give back.
  if (answer.body.contains("reference_failed") && !memory) return unusable(answer.body.value("why", ""));
  return answer.finding;
}

Finding Execution::ask_for_reference() {
  reference_ = tools_.references->ask(task_, cases_, weights_.init, target_);
  std::string blamed = tools_.references->blamed(reference_->key);
  if (!blamed.empty()) return unusable(blamed);
  if (reference_->failure.empty()) return {};
  if (!reference_->lost) return unusable(reference_->failure);
  lost_ = true;
  return {Rule::kVerifierFailed, reference_->failure};
}

// How many times the elements of the original a case has, among the inputs or the outputs, whichever grew more; at
// least 1. It is the task's doing alone.
double Execution::growth(const CaseSpec& spec) const {
  const CaseTrace *original = reference_trace(cases_[0]), *other = reference_trace(spec);
  auto ratio = [](int64_t before, int64_t after) {
    return static_cast<double>(after) / static_cast<double>(std::max<int64_t>(before, 1));
  };
  return std::max({1.0, ratio(input_elements(*original), input_elements(*other)),
                   ratio(output_elements(*original), output_elements(*other))});
}

void Execution::skip(const CaseSpec& spec, const std::string& why) { decided_[spec.name] = skipped_case(spec, why); }

void Execution::decide(const CaseSpec& spec, const Finding& failed) {
  decided_[spec.name] = failed_before_it_ran(spec, failed);
}

Json Execution::cases_to_record() {
  Json list = Json::array();
  for (const CaseSpec& spec : cases_) {
    const CaseTrace* trace = reference_trace(spec);
    if (!trace || !spec.not_possible.empty()) {
      auto said = reference_->not_possible.find(spec.recorded_as());
      skip(spec,
           said == reference_->not_possible.end() ? spec.not_possible : cat("the reference fails: ", said->second));
    } else if (!spec.instead_of.empty() && !decided_.count(spec.instead_of)) {
      skip(spec, cat("case ", spec.instead_of, " is there"));
    } else if (spec.additional && growth(spec) > executor_->most_growth()) {
      skip(spec, cat("its arrays are ", std::lround(growth(spec)),
                     " times those of the task: too large for the interpreter"));
    } else if (spec.trace.empty()) {
      list.push_back(record_case(*trace, spec));
    }
  }
  return list;
}

std::string Execution::take(const Blob& blob, const Json& asked) {
  try {
    strict::object(blob.header, "trace", {"nonce", "ok"}, {"seconds", "failures"});
    auto failed = case_failures(blob.header);
    auto parsed = parse_trace_file(std::make_shared<const std::string>(blob.tensors()));
    if (!parsed) return parsed.why;
    trace_ = std::move(*parsed.value);
    check_specialisations(trace_, target_.arch);
    size_t further = 0, next = 0;
    for (const CaseSpec& spec : cases_) {
      if (decided_.count(spec.name) || !spec.trace.empty()) continue;
      if (auto it = failed.find(spec.name); it != failed.end() && spec.additional) {
        decide(spec, it->second);
        continue;
      }
      if (next == trace_.cases.size()) return "the trace lacks a case";
      const CaseTrace& trace = trace_.cases[next++];
      if (trace.name != spec.name) return "the trace has another case";
      check_case(trace, *reference_trace(spec));
      for (const auto& [calls, suffix] : kFurtherCalls) {
        bool there = !spec.additional && next < trace_.cases.size() && trace_.cases[next].name == spec.name + suffix;
        if (!there) continue;
        check_case(trace_.cases[next++], *reference_trace(spec), calls);
        ++further;
      }
      if (spec.other_precision && output_dtypes(trace) != output_dtypes(*reference_trace(spec))) {
        decide(spec, Rule::kDtype);
      }
    }
    if (trace_.cases.size() + failed.size() != asked.size() + further) return "the trace has another number of cases";
  } catch (const Tainted& tainted) {
    return tainted.why;
  }
  return "";
}

Finding Execution::record(const std::string& code, const RunRecord& run_record) {
  Finding ready = ask_for_reference();
  if (!ready.passed()) return ready;
  decided_.clear();
  Json list = cases_to_record();
  Json args = {{"task_source", task_.source},
               {"candidate_source", code},
               {"init_inputs", list[0]["init_inputs"]},
               {"cases", list},
               {"gpu", to_json(target_)}};
  Blob blob;
  Finding ended = run_record(std::move(args), &blob);
  if (!ended.passed()) return ended;
  std::string why = take(blob, list);
  return why.empty() ? Finding() : Finding(Rule::kForgedResult, why);
}

// Asked of what the compiler made of the kernels: their text may say anything. Where not all of a case's were compiled,
// those of the original stand for the others.
Products Execution::multiplies(const CaseSpec& spec) const {
  if (!has_products(*reference_trace(spec))) return Products::kNone;
  bool rounded = false, in_tf32 = false;
  for (const CaseTrace* trace : {trace_.find(spec.recorded_as()), trace_.find(cases_[0].name)}) {
    bool complete = trace != nullptr;
    for (const TraceStep& step : trace ? trace->tape : std::vector<TraceStep>()) {
      for (const TraceChoice& choice : step.choices) {
        auto index = static_cast<size_t>(choice.spec);
        if (index >= kernels_.size() || !kernels_[index]) {
          complete = false;
          continue;
        }
        in_tf32 |= kernels_[index]->in_tf32;
        rounded |= kernels_[index]->rounds_products && !kernels_[index]->in_tf32;
      }
    }
    if (complete) break;
  }
  return rounded ? Products::kRounded : in_tf32 ? Products::kTf32 : Products::kNone;
}

Finding Execution::begin() { return end(executor_->begin(*reference_, trace_, kernels_)); }

JudgeRun Execution::planned(const CaseSpec& spec, int64_t seed_index, bool launches, const Variation& as) {
  JudgeRun run;
  run.task = reference_->key;
  run.name = spec.recorded_as();
  run.values = spec.values;
  run.additional = spec.additional;
  run.precision = precision_of(spec, tools_.tolerance, multiplies(spec));
  run.weight_seed = weights_.init;
  run.noise_seed = weights_.noise;
  run.input_seed = input_seed(spec, seed_index);
  for (int64_t index : as.earlier) run.earlier_seeds.push_back(input_seed(spec, index));
  run.calls = as.calls;
  run.choices = as.choices.empty() && launches ? choice_for(spec, seed_index) : as.choices;
  run.poison = poison_.next_u64();
  // Every candidate meets the first two, and nearly all the first three: programs shuffled and with a GPU's
  // roundings, then with IEEE's in order and backwards.
  if (launches) run.manner = runs_++ % 4;
  run.launches = launches;
  run.growth = growth(spec);
  return run;
}

// Tells the executor of runs beforehand. They are asked for in this order, as far as they are.
void Execution::expect(const std::vector<std::tuple<const CaseSpec*, int64_t, bool>>& runs) {
  expected_.clear();
  std::vector<JudgeRun> list;
  for (const auto& [spec, seed_index, launches] : runs) {
    list.push_back(expected_[{spec->name, seed_index, launches}] = planned(*spec, seed_index, launches, {}));
  }
  executor_->expect(std::move(list));
}

// What follows the first run of the original case, where that is small.
void Execution::expect_the_rest(const CaseSpec& original) {
  std::vector<std::tuple<const CaseSpec*, int64_t, bool>> runs;
  for (int64_t index = 1; index < original.input_seeds; ++index) runs.emplace_back(&original, index, true);
  for (const CaseSpec& spec : cases_) {
    bool there = spec.additional && !decided_.count(spec.name) && trace_.find(spec.recorded_as());
    if (there) runs.emplace_back(&spec, 0, true);
  }
  if (took_s_ > kSmallS) runs.clear();
  expect(runs);
}

// A tuner chooses otherwise on another GPU, or on a busy one: runs beyond the first at full size take one at random.
std::vector<int64_t> Execution::choice_for(const CaseSpec& spec, int64_t seed_index) const {
  const CaseTrace* trace = trace_.find(spec.recorded_as());
  if (spec.tiny || !trace || (&spec == &cases_[0] && seed_index == 0)) return {};
  std::vector<std::vector<int64_t>> choices;
  if (spec.additional) choices.emplace_back();  // The original case was run with the first one.
  for (ChoiceRun& one : choice_runs(trace_, *trace, executor_->runs_warps())) {
    if (one.asked && one.growth <= kMostPrograms) choices.push_back(std::move(one.choices));
  }
  if (choices.empty()) return {};
  return choices[static_cast<size_t>(input_seed(spec, seed_index)) % choices.size()];
}

Finding Execution::run(const CaseSpec& spec, int64_t seed_index, double until, bool launches, const Variation& as) {
  bool alone = !as.earlier.empty() || !as.choices.empty();
  auto expected = alone ? ExpectedRuns::node_type() : expected_.extract({spec.name, seed_index, launches});
  JudgeRun run = expected ? expected.mapped() : planned(spec, seed_index, launches, as);
  if (!spec.other_precision) tolerance_ = tolerance_of(run.precision);
  if (own_ && own_->over()) return own_->finding();
  run.deadline_s = left(until);
  if (run.deadline_s <= 0) return Rule::kDeadline;
  JudgeAnswer answer = executor_->run(run, own_);
  waited_s_ += answer.waited_s;
  took_s_ = run.deadline_s - left(until);
  ran_ |= launches && !answer.lost;
  kept_ = answer.body.is_object() && answer.body.value("kept", false);
  written_.reset();
  if (answer.body.is_object() && answer.body.contains("written")) written_ = answer.body["written"].get<double>();
  Finding ended = end(answer);
  if (!alone && !run.choices.empty()) {
    bool cannot = ended.outcome() == Outcome::kUnsupported || ended.outcome() == Outcome::kTimeout ||
                  ended.outcome() == Outcome::kOutOfMemory;
    if (cannot) return this->run(spec, seed_index, until, launches, {{}, "", {0}});
    if (!ended.passed()) ended.told.configuration = choice_name(trace_, *trace_.find(spec.recorded_as()), run.choices);
  }
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

double Execution::begins(double deadline_s) {
  if (own_) own_->set_deadline(deadline_s);
  return now_s() - waited_s_ + deadline_s;
}

double Execution::left(double until) const {
  return own_ && executor_->path() == VerifyPath::kInterpreter ? own_->left() : until + waited_s_ - now_s();
}

Finding Execution::without_triton(const CaseSpec& spec, double until) {
  Finding ended = run(spec, 0, until, /*launches=*/false);
  bool says_nothing = ended.outcome() == Outcome::kHarnessFault || ended.outcome() == Outcome::kTimeout;
  if (says_nothing) return ended;
  if (ended.passed()) return Rule::kSameWithoutLaunches;
  return tools_.strict && written_ && *written_ < kLeastWritten ? Rule::kMovedByLibrary : Rule::kPass;
}

// What it keeps from call to call must not make the next one wrong.
Finding Execution::call_again(const CaseSpec& spec, double until) {
  const bool kept = kept_, seen_at_tiny_sizes = !spec.tiny && has_tiny();
  const double one_s = took_s_;
  if (reference_trace(spec)->notes.value("keeps_state", false)) return {};
  Finding ended;
  bool any = false;
  auto judge_call = [&](size_t calls, const std::string& name) {
    any = keeps_state_ = true;
    if (seen_at_tiny_sizes && left(until) < 2 * one_s * static_cast<double>(calls)) return;
    Variation as{{}, name, {}};
    for (size_t index = 1; index < calls; ++index) as.earlier.push_back(static_cast<int64_t>(index));
    ended = run(spec, 0, until, true, as);
    // Several calls at once are more than a candidate is asked for; those of its small sizes have been judged. A call
    // that asks for more than the first one did is its own doing.
    bool too_much = ended.outcome() == Outcome::kUnsupported || ended.outcome() == Outcome::kOutOfMemory;
    const CaseTrace *first = trace_.find(spec.name), *all = trace_.find(name);
    const double most = kMostMore * static_cast<double>(calls);
    bool as_large = !all || (all->programs() <= most * first->programs() && all->bytes() <= most * first->bytes());
    if (seen_at_tiny_sizes && too_much && as_large) ended = {};
    if (!ended.passed()) ended.told.call = static_cast<int64_t>(calls);
  };
  for (const auto& [calls, suffix] : kFurtherCalls) {
    if (ended.passed() && trace_.find(spec.name + suffix)) judge_call(calls, spec.name + suffix);
  }
  if (kept && !any) {
    judge_call(2, "");
    // A kernel may count, and nobody should know how far.
    auto more = static_cast<size_t>(input_seed(spec, 1)) % kMoreCalls;
    if (ended.passed() && !seen_at_tiny_sizes) judge_call(3 + more, "");
  }
  return ended;
}

// Whichever of its configurations an autotuner chooses has to be right.
Finding Execution::other_choices(const CaseSpec& spec, double until, double one_s) {
  const CaseTrace* trace = trace_.find(spec.recorded_as());
  if (!trace) return {};
  double longest = one_s;
  for (const ChoiceRun& one : choice_runs(trace_, *trace, executor_->runs_warps())) {
    double growth = executor_->runs_cubins() ? 1 : std::max(one.growth, 1.0);
    if (!one.asked || left(until) < 2 * std::max(longest, one_s * growth)) {
      choices_not_run_.push_back(one.name);
      continue;
    }
    Finding ended = run(spec, 0, until, true, {{}, "", one.choices});
    longest = std::max(longest, took_s_);
    if (ended.outcome() == Outcome::kUnsupported) {
      choices_not_run_.push_back(one.name);
    } else if (!ended.passed()) {
      ended.told.configuration = one.name;
      return ended;
    }
  }
  return {};
}

// What was tuned at full size is what runs from now on, at every size.
Finding Execution::with_chosen(const std::vector<int64_t>& chosen, double deadline_s) {
  if (std::ranges::all_of(chosen, [](int64_t choice) { return choice == 0; })) return {};  // It is what was judged.
  for (const CaseSpec& spec : cases_) {
    auto ran = std::ranges::find(results_, spec.name, &CaseResult::name);
    if (ran == results_.end() || ran->skipped || !ran->finding.passed() || decided_.count(spec.name)) continue;
    Finding ended = run(spec, 0, begins(deadline_s * growth(spec)), true, {{}, "", chosen});
    if (ended.outcome() == Outcome::kHarnessFault) return ended;
    if (ended.outcome() == Outcome::kTampered) return {Rule::kVerifierFailed, human_text(ended)};  // It was not before.
    // What is too slow or too large now was neither when it was tuned.
    bool wrong = ended.outcome() == Outcome::kWrongOutput || ended.outcome() == Outcome::kNotFinite ||
                 ended.outcome() == Outcome::kRuntimeError;
    if (!wrong) continue;
    ended.told.configuration = choice_name(trace_, *trace_.find(spec.recorded_as()), chosen);
    if (spec.additional) ended.told.case_name = spec.name;
    return ended;
  }
  return {};
}

bool Execution::has_tiny() const { return std::ranges::any_of(cases_, &CaseSpec::tiny); }

Finding Execution::tiny_run(double deadline_s) {
  Finding ready = begin();  // Others' work is not on this candidate's clock.
  if (!ready.passed()) return ready;
  double until = begins(deadline_s);
  const CaseSpec* spec = &cases_[0];
  for (const CaseSpec& one : cases_) {
    if (one.tiny) spec = &one;
  }
  results_.push_back({spec->name, {}, {}, {}});
  at_ = &results_.back();
  expect({{spec, 0, true}, {spec, 0, false}});
  Finding ended = run(*spec, 0, until, true);
  const double one_s = took_s_;
  if (ended.passed()) ended = call_again(*spec, until);
  if (ended.passed()) ended = without_triton(*spec, until);
  if (ended.passed()) ended = other_choices(*spec, until, one_s);
  at_->finding = ended;
  at_ = nullptr;
  if (!spec->tiny) results_.pop_back();  // full_run has more to say about it.
  return ended;
}

void Execution::run_case(const CaseSpec& spec, double until, bool twice, bool also_without_launches) {
  at_ = &results_.back();
  Finding ended;
  for (int64_t index = 0; index < spec.input_seeds; ++index) {
    ended = run(spec, index, until, true);
    if (at_->skipped) break;
    if (ended.passed() && twice && index == 0) ended = run(spec, index, until, true);
    // Where there are no tiny sizes, tiny_run has done that.
    bool again = index == 0 && !spec.additional && (has_tiny() || also_without_launches);
    if (ended.passed() && again) ended = call_again(spec, until);
    if (ended.passed() && also_without_launches && index == 0) ended = without_triton(spec, until);
    if (ended.passed() && index == 0 && &spec == &cases_[0]) expect_the_rest(spec);
    if (!ended.passed()) break;
  }
  if (!at_->skipped) at_->finding = ended;
  at_ = nullptr;
}

Finding Execution::full_run(double deadline_s, bool also_without_launches) {
  Finding ready = begin();
  if (!ready.passed()) return ready;
  // Other garbage in fresh memory must not matter: every run has its own, and if there is no other one, there is a
  // second.
  bool more = std::any_of(cases_.begin(), cases_.end(), [this](const CaseSpec& spec) {
    return spec.trace == cases_[0].name && !decided_.count(spec.name);
  });
  return run_cases(cases_, decided_, &results_, [&](const CaseSpec& spec, bool first) {
    run_case(spec, begins(deadline_s * growth(spec)), first && !more, also_without_launches && !spec.additional);
  });
}

Finding Execution::time(double deadline_s) {
  Finding ready = begin();
  if (!ready.passed()) return ready;
  const CaseSpec& spec = cases_[0];
  JudgeTiming timing;
  timing.task = reference_->key;
  timing.name = spec.name;
  timing.precision = precision_of(spec, tools_.tolerance, multiplies(spec));
  timing.weight_seed = weights_.init;
  timing.noise_seed = weights_.noise;
  // The candidate's are those it was judged on last: a kernel that keeps answers from one run to the next could do so
  // between two readings too, and the answer is at hand.
  timing.candidate_seed = input_seed(spec, spec.input_seeds - 1);
  timing.reference_seed = input_seed(spec, spec.input_seeds);
  timing.deadline_s = deadline_s;
  TimeAnswer timed = executor_->time(timing, *tools_.timing);
  timing_ = timed.result;
  triton_share_ = timed.triton_share;
  Finding ended = end(timed.answer);
  bool moves = tools_.strict && count_compute_ops(*reference_trace(spec)) == 0;
  if (ended.passed() && moves && triton_share_ > 0 && triton_share_ < kLeastTime) return Rule::kMovedByLibrary;
  for (const auto& chosen : timed.chosen) {
    if (ended.passed()) ended = with_chosen(chosen, deadline_s);
  }
  return ended;
}

}  // namespace tritonrl
