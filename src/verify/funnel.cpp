// SPDX-License-Identifier: Apache-2.0
#include "verify/funnel.h"

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/text.h"
#include "verify/case_run.h"
#include "verify/compare.h"
#include "verify/extract.h"
#include "verify/plan_graph.h"
#include "verify/recording.h"
#include "verify/syntax.h"

namespace tritonrl {
namespace {

bool same_dtypes(const Plan& plan, const Nest<BlobView>& outputs) {
  std::vector<Dtype> expected;
  visit_leaves(outputs, [&](const BlobView& view) { expected.push_back(view.dtype); });
  return output_dtypes(plan) == expected;
}

// Then no comparison relative to the answer's size says anything.
bool answers_zero(const OracleAnswer& oracle) {
  bool zero = true;
  visit_leaves(oracle.truth, [&](const BlobView& view) {
    zero = zero && view.dtype == Dtype::kFloat64 &&
           std::all_of(view.bytes.begin(), view.bytes.end(), [](char byte) { return byte == 0; });
  });
  return zero;
}

constexpr size_t kMaxJobHeader = (1 << 20) - 4096;  // A frame's limits, less what the funnel adds.
constexpr size_t kMaxJobPayload = 1 << 30;
constexpr double kMostGrowth = 8;  // Half as large again in five dimensions is 7.6.

bool same_outputs(const Nest<BlobView>& a, const Nest<BlobView>& b) {
  if (a.kind != b.kind || a.children.size() != b.children.size()) return false;
  if (a.kind == Nest<BlobView>::Kind::kLeaf) return a.leaf.shape == b.leaf.shape && same_bytes(a.leaf, b.leaf);
  for (size_t i = 0; i < a.children.size(); ++i) {
    if (!same_outputs(a.children[i], b.children[i])) return false;
  }
  return true;
}

int64_t elements(const Nest<BlobView>& tensors) {
  if (tensors.kind == Nest<BlobView>::Kind::kLeaf) return tensors.leaf.numel();
  int64_t sum = 0;
  for (const auto& child : tensors.children) sum += elements(child);
  return sum;
}

int64_t input_elements(const OracleAnswer& oracle) {
  int64_t sum = 0;
  for (const OracleInput& input : oracle.inputs) sum += input.is_tensor ? input.tensor.numel() : 0;
  return sum;
}

// How many times the elements of the original a case has, among the inputs or the outputs, whichever grew more; at
// least 1. It is the task's doing alone.
double growth(const OracleAnswer& original, const OracleAnswer& other) {
  auto ratio = [](int64_t before, int64_t after) {
    return static_cast<double>(after) / static_cast<double>(std::max<int64_t>(before, 1));
  };
  return std::max({1.0, ratio(input_elements(original), input_elements(other)),
                   ratio(elements(original.outputs), elements(other.outputs))});
}

// How a child ended that sent nothing usable. `saw_inputs`: what it wrote is not for the policy.
Finding judge_exit(const JobAnswer& answer, bool saw_inputs) {
  using Status = JobAnswer::Status;
  switch (answer.status) {
    case Status::kLost:
    case Status::kForkFailed:
    case Status::kKilled:
      return {Rule::kVerifierFailed, answer.fault.empty() ? "the worker gave the job up" : answer.fault};
    case Status::kDeadline:
      return with_secret(Rule::kDeadline, cat("not finished after ", human_seconds(answer.seconds)));
    case Status::kOverflow:
      return Rule::kResultTooLarge;
    case Status::kSignaled:
      if (answer.code == SIGKILL) return Rule::kMemoryCap;
      if (answer.code == SIGXCPU) return Rule::kProcessorTime;
      return {Rule::kProcessEnded,
              cat("the process was ended by signal ", answer.code, " (", strsignal(answer.code), ")")};
    case Status::kExited:
      break;
  }
  if (answer.code == 0 && !answer.result.empty()) return {};
  if (answer.stderr_tail.find("MemoryError") != std::string::npos) return Rule::kOutOfMemory;
  std::string ended = cat("the process ended with exit code ", answer.code, " and without a result");
  std::string said = trim(answer.stderr_tail);
  if (said.empty()) return {Rule::kProcessEnded, ended};
  said = "it said: " + said;
  return saw_inputs ? with_secret({Rule::kProcessEnded, ended}, said)
                    : Finding(Rule::kProcessEnded, cat(ended, "; ", said));
}

}  // namespace

void VerifyConfig::validate() const {
  if (seeds_per_case < 2)
    throw usage_error("verify.seeds_per_case must be at least 2", "", "one input can be met by luck");
  if (seed != 0 && seed < int64_t{1} << 32) {
    throw usage_error("verify.seed must be 0 or at least 2^32", "",
                      "a candidate could guess a small seed, and with it the secret inputs; draw one at random");
  }
  if (workers < 0) throw usage_error("verify.workers must not be negative");
  if (compile_deadline_s <= 0 || tiny_deadline_s <= 0 || full_deadline_s <= 0 || oracle_deadline_s <= 0 ||
      time_deadline_s <= 0) {
    throw usage_error("deadlines of verify must be positive");
  }
  if (gpus < -1) throw usage_error("verify.gpus must be -1 (all), 0 (none) or a number");
  if (memory_mb < 256) throw usage_error("verify.memory_mb must be at least 256");
  if (max_programs < 1) throw usage_error("verify.max_programs must be positive");
  bool skips[kStageCount] = {};
  for (const auto& name : skip_stages) {
    auto stage = stage_from_string(name);
    if (!stage) {
      std::vector<std::string> known;
      for (int i = 0; i < kStageCount; ++i) known.push_back(to_string(static_cast<Stage>(i)));
      throw usage_error(cat("unknown stage \"", name, "\" in verify.skip_stages"), "",
                        cat("stages: ", join(known, ", ")));
    }
    skips[static_cast<int>(*stage)] = true;
  }
  auto skipped = [&](Stage stage) { return skips[static_cast<int>(stage)]; };
  if (skipped(Stage::kExtract)) throw usage_error("verify.skip_stages cannot hold extract: it finds the code");
  if (skipped(Stage::kCompile) && !(skipped(Stage::kTinyRun) && skipped(Stage::kFullRun))) {
    throw usage_error("verify.skip_stages holds compile, without which tiny_run and full_run have nothing to run", "",
                      "skip them too");
  }
}

// One candidate on its way. Each stage is a member that returns how it ended.
class CandidateRun {
 public:
  CandidateRun(const Funnel& funnel, const Candidate& candidate) : f_(funnel), candidate_(candidate) {
    Rng secret(static_cast<uint64_t>(f_.secret_seed_));
    weight_seed_ = static_cast<int64_t>(secret.at("weights").at(candidate.task.source).next_u64() >> 1 & 0x7fffffff);
    inputs_ = secret.at("inputs").at(candidate.task.source);
    poison_ = Rng(std::hash<std::string>{}(random_hex(8)));
    specs_ = f_.cases_.cases(candidate.task);
    CHECK(!specs_.empty() && !specs_[0].additional && !specs_[0].tiny) << "the first case is no ordinary one";
    if (f_.gpu_.lanes) gpu_.emplace(f_.gpu_, candidate.task, specs_, weight_seed_, inputs_, poison_);
  }

  Verdict go() {
    Verdict verdict;
    verdict.candidate_id = candidate_.id;
    verdict.task_id = candidate_.task.id;
    verdict.level = candidate_.task.level;
    verdict.sandbox_missing = f_.sandbox_missing_;
    verdict.outcome = Outcome::kPass;
    std::vector<StageResult> order_seen;  // With skipped stages, which the order takes for passed.
    while (auto stage = f_.order_.next(order_seen)) {
      if (*stage == Stage::kTime && !gpu_) break;  // Nothing to measure on.
      order_seen.push_back(run_stage(*stage));
      if (skipped(*stage)) continue;
      verdict.stages.push_back(order_seen.back());
      if (!verdict.correct()) continue;  // It is decided; a StageOrder may want to see more.
      verdict.outcome = order_seen.back().outcome();
      verdict.stopped_at = *stage;
    }
    verdict.path = interpreted_ ? VerifyPath::kInterpreter : VerifyPath::kNone;
    if (gpu_ && gpu_->ran()) verdict.path = VerifyPath::kReplay;
    if (gpu_ && gpu_->timing() && verdict.correct()) {
      verdict.timing = gpu_->timing();
      verdict.speedup = verdict.timing->speedup;
      verdict.triton_share = gpu_->triton_share();
    }
    verdict.cases = gpu_ ? gpu_->results() : results_;
    verdict.delegated_ops = delegated_;
    verdict.policies = policies_;
    verdict.triton_compile_s = triton_compile_s_;
    verdict.triton_launches = launches_;
    verdict.task_failure = clean_message(gpu_ ? gpu_->task_failure() : task_failure_);
    verdict.code = valid_utf8(code_);
    return verdict;
  }

  bool worth_another_try() const { return worker_lost_ || (gpu_ && gpu_->worth_another_try()); }

  // The oracle's answer for seed number `index` of a case.
  std::shared_ptr<const OracleAnswer> ask(const CaseSpec& spec, int64_t index) {
    uint64_t seed = inputs_.at(spec.name).at(static_cast<uint64_t>(index)).next_u64();
    return f_.oracle_.ask(candidate_.task, spec, weight_seed_, static_cast<int64_t>(seed & 0x7fffffffffffff));
  }

 private:
  bool skipped(Stage stage) const {
    if (stage == Stage::kTime && !candidate_.timed) return true;
    const auto& names = f_.config_.skip_stages;
    return std::find(names.begin(), names.end(), to_string(stage)) != names.end();
  }

  // Every stage goes through here: off by name? -> timed -> run -> recorded.
  StageResult run_stage(Stage stage) {
    StageResult result{stage, 0, {}};
    if (skipped(stage)) return result;
    double start = now_s();
    result.finding = dispatch(stage);
    result.seconds = now_s() - start;
    return result;
  }

  Finding dispatch(Stage stage) {
    switch (stage) {
      case Stage::kExtract:
        return extract();
      case Stage::kSyntax:
        return syntax();
      case Stage::kCompile:
        return compile();
      case Stage::kTinyRun:
        return tiny_run();
      case Stage::kFullRun:
        return full_run();
      case Stage::kTime:
        return gpu_->time(f_.config_.time_deadline_s);
    }
    CHECK(false) << "no such stage here";
    return {};
  }

  Finding extract() {
    Extraction found = candidate_.is_code ? accept_code(candidate_.text) : extract_code(candidate_.text);
    code_ = found.code;
    return found.why;
  }

  Finding syntax() {
    if (valid_utf8(code_) != code_) return Rule::kNotUtf8;
    SyntaxCheck check = check_syntax(code_);
    if (check.ok) return {};
    Finding found(Rule::kNotPython, check.message);
    found.told.line = check.line;
    return found;
  }

  // The task itself failed, which is of no consequence to the candidate.
  Finding unusable(const OracleAnswer& oracle) {
    if (oracle.lost) worker_lost_ = true;
    if (!oracle.lost) task_failure_ = oracle.failure;
    if (oracle.lost) return {Rule::kVerifierFailed, oracle.failure};
    return {Rule::kReferenceFailed,
            cat("task ", candidate_.task.id, " is of no use: its reference failed: ", oracle.failure)};
  }

  // Runs a job; a blob is left in *blob when the outcome is pass.
  Finding run_job(ZygoteKind kind, Job job, Blob* blob) {
    if (job.args.dump(-1, ' ', false, Json::error_handler_t::replace).size() > kMaxJobHeader) {
      return {Rule::kTooLarge, "the code, or the list of its parameters, is too large"};
    }
    if (job.payload.size() > kMaxJobPayload) return {Rule::kTooLarge, "the recording and its tensors are too large"};
    job.memory_bytes = f_.config_.memory_mb << 20;
    JobAnswer answer = f_.pool_.run(kind, std::move(job));
    Finding ending = judge_exit(answer, kind == ZygoteKind::kInterpret);
    if (ending.outcome() == Outcome::kHarnessFault) worker_lost_ = true;
    if (!ending.passed()) return ending;
    auto parsed = parse_blob(std::move(answer.result), answer.nonce);
    if (!parsed) return {Rule::kForgedResult, parsed.why};
    if (parsed.value->failure) return *parsed.value->failure;
    *blob = std::move(*parsed.value);
    return {};
  }

  Finding compile() {
    double until = now_s() + f_.config_.compile_deadline_s;
    Finding ending = record_and_compile("", until);
    // Host code may have another kernel for when the first one does not compile.
    bool catches = code_.find("except") != std::string::npos;
    if (ending.outcome() == Outcome::kCompileError && catches) ending = record_and_compile("try", until);
    return ending;
  }

  // `mode`: "try" lets the host code see what the compiler raises.
  Finding record_and_compile(const std::string& mode, double until) {
    Finding ending = gpu_ ? record_for_gpu(mode, until) : record_for_interpreter(mode, until);
    if (ending.passed()) ending = policy();
    if (!ending.passed()) return ending;
    const PlanFile& file = gpu_ ? gpu_->recording() : recording_.file;
    std::vector<const Plan*> plans;
    for (const Plan& plan : file.cases) {
      // The interpreter needs no cubins; that those of the full cases can be made is enough.
      bool later = std::any_of(specs_.begin(), specs_.end(), [&](const CaseSpec& spec) {
        return spec.name == plan.name && (spec.additional || (spec.tiny && !gpu_));
      });
      if (!later) plans.push_back(&plan);
    }
    KernelSet kernels;
    ending = compile_kernels(file, plans, until, &kernels);
    if (!ending.passed()) return ending;
    for (const CaseSpec& spec : specs_) {
      const Plan* plan = spec.additional && spec.plan.empty() ? file.find(spec.name) : nullptr;
      if (!plan) continue;
      plans.push_back(plan);
      ending = compile_kernels(file, plans, until, &kernels);  // What is known costs nothing.
      if (ending.passed()) continue;
      if (ending.outcome() == Outcome::kHarnessFault) return ending;
      plans.pop_back();
      settle(spec, ending);
    }
    if (gpu_) gpu_->set_kernels(std::move(kernels));
    return {};
  }

  Finding compile_kernels(const PlanFile& file, const std::vector<const Plan*>& plans, double until,
                          KernelSet* kernels) {
    double seconds = 0;
    Finding ending = f_.compiler_.compile(
        file, plans, until - now_s(),
        [this](Job job, Blob* blob) { return run_job(ZygoteKind::kRecord, std::move(job), blob); }, kernels, &seconds);
    triton_compile_s_ = triton_compile_s_.value_or(0) + seconds;
    return ending;
  }

  // An additional case in which the candidate failed before it was run.
  void settle(const CaseSpec& spec, const Finding& failed) {
    if (gpu_) return gpu_->settle(spec, failed);
    settled_[spec.name] = failed_before_it_ran(spec, failed);
  }
  void skip(const CaseSpec& spec, const std::string& why) { settled_[spec.name] = skipped_case(spec, why); }

  Job record_job(Json args, const std::string& mode, double until) const {
    if (!mode.empty()) {
      for (Json& one : args["cases"]) one["compile"] = mode;
    }
    Job job{"record", std::move(args), ""};
    job.deadline_s = std::max(until - now_s(), 0.1);
    return job;
  }

  Finding record_for_gpu(const std::string& mode, double until) {
    return gpu_->record(code_, [&](Json args, Blob* blob) {
      return run_job(ZygoteKind::kRecord, record_job(std::move(args), mode, until), blob);
    });
  }

  Finding record_for_interpreter(const std::string& mode, double until) {
    requests_.clear();
    growth_.clear();
    settled_.clear();
    for (const CaseSpec& spec : specs_) {
      if (!spec.not_possible.empty()) {
        skip(spec, spec.not_possible);
        continue;
      }
      if (!spec.plan.empty()) continue;
      if (!spec.instead_of.empty() && !settled_.count(spec.instead_of)) {
        skip(spec, cat("case ", spec.instead_of, " is there"));
        continue;
      }
      auto oracle = ask(spec, 0);
      if (std::string why = cannot_do(spec, *oracle); !why.empty()) {
        skip(spec, why);
        continue;
      }
      if (!oracle->failure.empty()) return unusable(*oracle);
      double grown = requests_.empty() ? 1 : growth(*requests_[0].oracle, *oracle);
      if (spec.additional && grown > kMostGrowth) {
        skip(spec,
             cat("its arrays are ", std::lround(grown), " times those of the task: too large for the interpreter"));
        continue;
      }
      growth_[spec.name] = grown;
      requests_.push_back({spec, oracle});
    }
    CHECK(!requests_.empty()) << "a task without cases";
    Json args = record_arguments(candidate_.task, code_, weight_seed_, requests_);
    Blob blob;
    Finding ending = run_job(ZygoteKind::kRecord, record_job(std::move(args), mode, until), &blob);
    if (!ending.passed()) return ending;
    auto recording = parse_recording(blob, requests_);
    if (!recording) return {Rule::kForgedResult, recording.why};
    recording_ = std::move(*recording.value);
    for (const CaseRequest& request : requests_) {
      const CaseSpec& spec = request.spec;
      if (auto it = recording_.failed.find(spec.name); it != recording_.failed.end()) {
        settle(spec, it->second);
      } else if (spec.other_precision && !same_dtypes(*recording_.file.find(spec.name), request.oracle->outputs)) {
        settle(spec, Rule::kDtype);
      }
    }
    return {};
  }

  // Why the reference cannot do an additional case; "" when it can, or when that is not for it to say.
  static std::string cannot_do(const CaseSpec& spec, const OracleAnswer& oracle) {
    if (!spec.additional || oracle.lost) return "";
    if (!oracle.failure.empty()) return cat("the reference fails: ", oracle.failure);
    if (answers_zero(oracle)) return "the answer is zero there";
    Comparison itself = compare_outputs(oracle.outputs, oracle.outputs, oracle.truth);
    return itself.passed() ? "" : "the reference fails its own comparison";
  }

  // Both policies are looked at and reported; the configured one decides.
  Finding policy() {
    bool strict = f_.config_.policy == LibraryCalls::kStrict;
    Finding broken;
    for (const CaseSpec& spec : specs_) {
      const Plan* found = (gpu_ ? gpu_->recording() : recording_.file).find(spec.name);
      if (!found) continue;  // It has no recording of its own, or is settled.
      const Plan& plan = *found;
      PolicyFinding findings[] = {check_policy(plan, CallPolicy::kStrict), check_policy(plan, CallPolicy::kMixed)};
      for (int i = 0; i < 2; ++i) {
        std::string& said = policies_[i == 0 ? "strict" : "mixed"];
        if (said.empty()) said = human_text(findings[i].finding);
      }
      if (!spec.tiny && !spec.additional) {
        launches_ = plan.launches();
        delegated_ = findings[0].delegated_ops;
      }
      if (broken.passed()) broken = findings[strict ? 0 : 1].finding;
    }
    return broken;
  }

  // Runs one plan on one of the oracle's inputs and compares. `with_launches` false is the kill switch.
  Finding interpret(const CaseRequest& request, const OracleAnswer& oracle, double until, bool with_launches) {
    // Programs run in order, backwards, in order, ...: what depends on the order shows up.
    uint64_t poison = poison_.next_u64() >> 12 << 1 | (with_launches ? runs_++ & 1 : 0);
    // A product's work grows faster than its arrays do, at most with their square.
    double grown = growth_.at(request.spec.recorded_as());
    auto programs = static_cast<int64_t>(static_cast<double>(f_.config_.max_programs) * grown * grown);
    InterpretRequest wanted =
        interpret_arguments(recording_, recording_.plan(request.spec), oracle, poison, programs, with_launches);
    Job job{"interpret", std::move(wanted.args), std::move(wanted.payload)};
    job.deadline_s = until - now_s();
    if (job.deadline_s <= 0) return Rule::kDeadline;
    Blob blob;
    Finding ending = run_job(ZygoteKind::kInterpret, std::move(job), &blob);
    if (!ending.passed()) return ending;
    interpreted_ = true;
    auto result = parse_interpretation(std::move(blob), oracle);
    if (!result) return {Rule::kForgedResult, result.why};
    Comparison comparison =
        compare_outputs(result.value->outputs, oracle.outputs, oracle.truth, precision_of(request.spec, code_));
    if (with_launches && std::isfinite(comparison.worst)) {
      results_.back().worst = std::max(results_.back().worst.value_or(0), comparison.worst);
    }
    if (!comparison.passed()) {
      comparison.finding.told.sizes = request.spec.constants;
      return comparison.finding;
    }
    if (!result.value->guards_intact) return Rule::kWritesOutside;
    for (size_t i = 0; i < oracle.inputs.size(); ++i) {
      const auto& after = result.value->inputs_after[i];
      if (!after || oracle.mutated.count(i)) continue;
      if (!same_bytes(*after, oracle.inputs[i].tensor)) return input_changed(static_cast<int64_t>(i));
    }
    return {};
  }

  Finding without_triton(const CaseRequest& request, const OracleAnswer& oracle, double until) {
    Finding ending = interpret(request, oracle, until, /*with_launches=*/false);
    if (ending.outcome() == Outcome::kHarnessFault) return ending;
    if (!ending.passed()) return {};
    return Rule::kSameWithoutLaunches;
  }

  Finding tiny_run() {
    if (gpu_) return gpu_->tiny_run(f_.config_.tiny_deadline_s);
    double until = now_s() + f_.config_.tiny_deadline_s;
    const CaseRequest* request = &requests_[0];
    for (const CaseRequest& one : requests_) {
      if (one.spec.tiny) request = &one;
    }
    results_.push_back({request->spec.name, {}, {}, {}});
    Finding ending = interpret(*request, *request->oracle, until, true);
    if (ending.passed()) ending = without_triton(*request, *request->oracle, until);
    results_.back().finding = ending;
    if (!request->spec.tiny) results_.pop_back();  // full_run has more to say about it.
    return ending;
  }

  Finding full_run() {
    if (gpu_) return gpu_->full_run(f_.config_.full_deadline_s, skipped(Stage::kTinyRun));
    return run_cases(specs_, settled_, &results_, [this](const CaseSpec& spec, bool first) { run_case(spec, first); });
  }

  void run_case(const CaseSpec& spec, bool twice) {
    double until = now_s() + f_.config_.full_deadline_s * growth_.at(spec.recorded_as());
    for (int64_t index = 0; index < spec.input_seeds; ++index) {
      auto oracle = ask(spec, index);
      if (std::string why = cannot_do(spec, *oracle); !why.empty()) {
        results_.back() = skipped_case(spec, why);
        return;
      }
      if (!oracle->failure.empty()) {
        results_.back().finding = unusable(*oracle);
        return;
      }
      CaseRequest request{spec, oracle};
      Finding ending = interpret(request, *oracle, until, true);
      // Other garbage in fresh memory must not matter.
      if (ending.passed() && twice && index == 0) ending = interpret(request, *oracle, until, true);
      if (ending.passed() && skipped(Stage::kTinyRun) && index == 0 && !spec.additional) {
        ending = without_triton(request, *oracle, until);
      }
      results_.back().finding = ending;
      if (!ending.passed()) return;
    }
  }

  const Funnel& f_;
  const Candidate& candidate_;
  int64_t weight_seed_ = 0;
  Rng inputs_, poison_;
  std::string code_;
  std::vector<CaseSpec> specs_;
  std::vector<CaseRequest> requests_;     // Those with a recording of their own.
  std::map<std::string, double> growth_;  // Of their arrays over those of the first, by case.
  SettledCases settled_;
  std::vector<CaseResult> results_;  // The last is the one being run.
  Recording recording_;
  std::optional<GpuPath> gpu_;
  std::vector<std::string> delegated_;
  std::map<std::string, std::string> policies_;
  std::optional<double> triton_compile_s_;
  int64_t launches_ = 0;
  uint64_t runs_ = 0;
  bool interpreted_ = false;
  std::string task_failure_;
  std::atomic<bool> worker_lost_{false};
};

Funnel::Funnel(const VerifyConfig& config, WorkerPool& pool, OracleCache& oracle, const CaseSource& cases,
               const StageOrder& order, int64_t secret_seed, std::vector<std::string> sandbox_missing, GpuTools gpu)
    : config_(config),
      pool_(pool),
      oracle_(oracle),
      cases_(cases),
      order_(order),
      secret_seed_(secret_seed),
      sandbox_missing_(std::move(sandbox_missing)),
      gpu_(gpu) {}

Verdict Funnel::verify(const Candidate& candidate) const {
  Verdict verdict;
  {
    CandidateRun first(*this, candidate);
    verdict = first.go();
    if (!verdict.is_harness_fault() || !first.worth_another_try()) return verdict;
  }
  log_debug(cat("candidate ", candidate.id, " is tried again: ", verdict.reason()));
  return CandidateRun(*this, candidate).go();
}

std::string Funnel::lint(const Task& task) const {
  Candidate none{"lint", task, "", true};
  CandidateRun run(*this, none);
  for (const CaseSpec& spec : cases_.cases(task)) {
    if (spec.additional) continue;  // Skipped where the reference cannot do it.
    auto oracle = run.ask(spec, 0);
    if (oracle->lost) throw environment_error(oracle->failure);
    std::string where = cat(" in case ", spec.name);
    if (!oracle->failure.empty()) return clean_message(cat("the reference fails", where, ": ", oracle->failure));
    Comparison self = compare_outputs(oracle->outputs, oracle->outputs, oracle->truth);
    if (!self.passed()) return cat("the reference fails its own comparison", where, ": ", human_text(self.finding));
    std::string control = control_that_passes(oracle->outputs, oracle->truth);
    if (spec.tiny && control.empty()) continue;
    auto other = run.ask(spec, 1);
    if (other->lost) throw environment_error(other->failure);
    if (!other->failure.empty()) return clean_message(cat("the reference fails", where, ": ", other->failure));
    // So few numbers may agree by chance once, hardly twice.
    if (spec.tiny && control_that_passes(other->outputs, other->truth).empty()) continue;
    if (!control.empty()) return cat("a wrong answer would pass", where, ": ", control);
    if (same_outputs(oracle->outputs, other->outputs)) {
      return cat("a constant would pass", where, ": the outputs of two input seeds are the same");
    }
  }
  return "";
}

}  // namespace tritonrl
