// SPDX-License-Identifier: Apache-2.0
#include "verify/stages.h"

#include <algorithm>
#include <atomic>
#include <set>

#include "base/check.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/text.h"
#include "verify/extract.h"
#include "verify/sandbox/job_run.h"
#include "verify/syntax.h"

namespace tritonrl {
namespace {

// Does each launch have a choice that was compiled for other arguments, with the same types and constants? What else is
// known of arguments (what divides them) makes a kernel faster, and does not decide whether it compiles.
bool compiles_as_well(const TraceFile& file, const CaseTrace& trace, const KernelSet& kernels) {
  auto text = [&](size_t spec) {
    Json what = file.specs[spec].json;
    what.erase("attrs");
    what.erase("key");
    return what.dump();
  };
  std::set<std::string> known;
  for (size_t spec = 0; spec < kernels.size() && spec < file.specs.size(); ++spec) {
    if (kernels[spec]) known.insert(text(spec));
  }
  return std::all_of(trace.tape.begin(), trace.tape.end(), [&](const TraceStep& step) {
    return !step.is_launch || std::any_of(step.choices.begin(), step.choices.end(), [&](const TraceChoice& choice) {
      return choice.spec >= 0 && known.count(text(static_cast<size_t>(choice.spec))) > 0;
    });
  });
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
  if (record_deadline_s <= 0 || compile_deadline_s <= 0 || tiny_deadline_s <= 0 || full_deadline_s <= 0 ||
      reference_deadline_s <= 0 || time_deadline_s <= 0) {
    throw usage_error("deadlines of verify must be positive");
  }
  if (gpus < -1) throw usage_error("verify.gpus must be -1 (all), 0 (none) or a number");
  typical_gpu(arch);
  if (judges_per_gpu < 1 || judges_per_gpu > 8) throw usage_error("verify.judges_per_gpu must be 1 to 8");
  if (memory_mb < 256) throw usage_error("verify.memory_mb must be at least 256");
  if (max_programs < 1) throw usage_error("verify.max_programs must be positive");
  auto skipped = [&](Stage stage) { return std::ranges::count(skip_stages, stage) > 0; };
  if (skipped(Stage::kExtract)) throw usage_error("verify.skip_stages cannot hold extract: it finds the code");
  if (skipped(Stage::kCompile) && !(skipped(Stage::kTinyRun) && skipped(Stage::kFullRun))) {
    throw usage_error("verify.skip_stages holds compile, without which tiny_run and full_run have nothing to run", "",
                      "skip them too");
  }
}

// One candidate on its way. Each stage is a member that returns how it ended.
class CandidateRun {
 public:
  CandidateRun(const Stages& stages, const Candidate& candidate, const OwnLimits& limits)
      : f_(stages), candidate_(candidate), limits_(limits) {
    Rng secret(static_cast<uint64_t>(f_.secret_seed_));
    auto drawn = [&](const char* what) {
      return static_cast<int64_t>(secret.at(what).at(candidate.task.source).next_u64() & 0x7fffffffffffff);
    };
    WeightSeeds weights{drawn("weights") & 0x7fffffff, drawn("noise")};
    std::vector<CaseSpec> specs = f_.cases_.cases(candidate.task);
    CHECK(!specs.empty() && !specs[0].additional && !specs[0].tiny) << "the first case is no ordinary one";
    execution_.emplace(f_.tools_, candidate.task, std::move(specs), weights,
                       secret.at("inputs").at(candidate.task.source), Rng(std::hash<std::string>{}(random_hex(8))));
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
      if (*stage == Stage::kTime && !execution_->executor().can_time()) break;
      order_seen.push_back(run_stage(*stage));
      if (skipped(*stage)) continue;
      verdict.stages.push_back(order_seen.back());
      if (!verdict.correct()) continue;  // It is decided; a StageOrder may want to see more.
      verdict.outcome = order_seen.back().outcome();
      verdict.stopped_at = *stage;
    }
    if (execution_->ran()) verdict.path = execution_->executor().path();
    if (execution_->timing() && verdict.correct()) {
      verdict.timing = execution_->timing();
      verdict.speedup = verdict.timing->speedup;
      verdict.triton_share = execution_->triton_share();
    }
    verdict.cases = execution_->results();
    verdict.tolerance = execution_->tolerance();
    verdict.delegated_ops = delegated_;
    verdict.policies = policies_;
    verdict.triton_compile_s = triton_compile_s_;
    verdict.triton_launches = launches_;
    verdict.keeps_state = execution_->keeps_state();
    for (const std::string& name : execution_->choices_not_run()) {
      verdict.choices_not_run.push_back(clean_message(name));
    }
    verdict.task_failure = clean_message(execution_->task_failure());
    verdict.code = valid_utf8(code_);
    return verdict;
  }

  bool worth_another_try() const { return worker_lost_ || execution_->worth_another_try(); }

 private:
  bool skipped(Stage stage) const {
    if (stage == Stage::kTime && !candidate_.timed) return true;
    return std::ranges::count(f_.config_.skip_stages, stage) > 0;
  }

  // Every stage goes through here: skipped? -> timed -> run.
  StageResult run_stage(Stage stage) {
    StageResult result{stage, 0, {}};
    if (skipped(stage)) return result;
    auto limit = limits_.find(stage);
    own_.emplace(limit == limits_.end() ? OwnTime::kNoLimit : limit->second);
    execution_->charge(&*own_);
    double start = now_s();
    result.finding = dispatch(stage);
    result.seconds = now_s() - start;
    if (own_->charged()) result.own_s = own_->seconds();
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
        return execution_->tiny_run(f_.config_.tiny_deadline_s);
      case Stage::kFullRun:
        return execution_->full_run(f_.config_.full_deadline_s, skipped(Stage::kTinyRun));
      case Stage::kTime:
        return execution_->time(f_.config_.time_deadline_s);
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

  // Leaves the child's blob in *blob when the outcome is pass.
  Finding run(Job job, Blob* blob, const std::string& kernel = "") {
    job.memory_bytes = f_.config_.memory_mb << 20;
    Finding ended = run_job(f_.pool_, ForkServerKind::kRecord, std::move(job), blob, &*own_, kernel);
    if (ended.outcome() == Outcome::kHarnessFault) worker_lost_ = true;
    return ended;
  }

  Finding compile() {
    own_->set_deadline(f_.config_.compile_deadline_s);
    Finding ended = record_and_compile("");
    // Host code may have another kernel for when the first one does not compile.
    bool catches = code_.find("except") != std::string::npos;
    if (ended.outcome() == Outcome::kCompileError && catches) ended = record_and_compile("try");
    return ended;
  }

  // `mode`: "try" lets the host code see what the compiler raises.
  Finding record_and_compile(const std::string& mode) {
    Finding ended = execution_->record(code_, [&](Json args, Blob* blob) {
      for (Json& one : args["cases"]) {
        if (!mode.empty()) one["compile"] = mode;
      }
      const VerifyConfig& config = f_.config_;
      return run({"record", std::move(args), "", mode.empty() ? config.record_deadline_s : config.compile_deadline_s},
                 blob);
    });
    if (ended.passed()) ended = call_rules();
    if (!ended.passed()) return ended;
    const TraceFile& file = execution_->trace();
    bool runs_cubins = execution_->executor().runs_cubins();
    std::vector<const CaseTrace*> traces;
    for (const CaseTrace& trace : file.cases) {
      bool later = std::any_of(specs().begin(), specs().end(), [&](const CaseSpec& spec) {
        return is_call_of(trace, spec) && (spec.additional || (spec.tiny && !runs_cubins));
      });
      if (!later) traces.push_back(&trace);
    }
    KernelSet kernels;
    ended = compile_kernels(file, traces, &kernels);
    if (!ended.passed()) return ended;
    for (const CaseSpec& spec : specs()) {
      const CaseTrace* trace = spec.additional && spec.trace.empty() ? file.find(spec.name) : nullptr;
      if (!trace || (!runs_cubins && compiles_as_well(file, *trace, kernels))) continue;
      traces.push_back(trace);
      ended = compile_kernels(file, traces, &kernels);  // What is known costs nothing.
      if (ended.passed()) continue;
      if (ended.outcome() == Outcome::kHarnessFault) return ended;
      traces.pop_back();
      execution_->decide(spec, ended);
    }
    execution_->set_kernels(std::move(kernels));
    return {};
  }

  Finding compile_kernels(const TraceFile& file, const std::vector<const CaseTrace*>& traces, KernelSet* kernels) {
    double seconds = 0;
    Finding ended = f_.compiler_.compile(
        file, traces, f_.config_.compile_deadline_s,
        [this](Job job, Blob* blob, const std::string& kernel) {
          job.args["gpu"] = to_json(execution_->target());
          return run(std::move(job), blob, kernel);
        },
        &*own_, kernels, &seconds);
    triton_compile_s_ = triton_compile_s_.value_or(0) + seconds;
    return ended;
  }

  // Both call rules are looked at and reported; the configured one decides.
  Finding call_rules() {
    bool strict = f_.config_.call_rules == CallRules::kStrict;
    Finding broken;
    for (const CaseTrace& trace : execution_->trace().cases) {
      auto of = std::ranges::find_if(specs(), [&](const CaseSpec& spec) { return is_call_of(trace, spec); });
      CHECK(of != specs().end()) << "a trace of no case";
      const CaseSpec& spec = *of;
      const CaseTrace* reference = execution_->reference_trace(spec);
      CallFinding findings[] = {check_calls(trace, CallRules::kStrict, reference),
                                check_calls(trace, CallRules::kMixed, reference)};
      for (int i = 0; i < 2; ++i) {
        std::string& said = policies_[i == 0 ? "strict" : "mixed"];
        if (said.empty()) said = human_text(findings[i].finding);
      }
      if (!spec.tiny && trace.name == spec.name && !spec.additional) {
        launches_ = trace.launches();
        delegated_ = findings[0].delegated_ops;
      }
      if (broken.passed()) broken = findings[strict ? 0 : 1].finding;
    }
    return broken;
  }

  const std::vector<CaseSpec>& specs() const { return execution_->cases(); }

  const Stages& f_;
  const Candidate& candidate_;
  const OwnLimits& limits_;
  std::optional<Execution> execution_;
  std::optional<OwnTime> own_;  // Of the stage that is being run.
  std::string code_;
  std::vector<std::string> delegated_;
  std::map<std::string, std::string> policies_;
  std::optional<double> triton_compile_s_;
  int64_t launches_ = 0;
  std::atomic<bool> worker_lost_{false};  // Kernels are compiled side by side.
};

Stages::Stages(const VerifyConfig& config, WorkerPool& pool, const CaseSource& cases, const StageOrder& order,
               ExecutionTools tools, int64_t secret_seed, std::vector<std::string> sandbox_missing)
    : config_(config),
      pool_(pool),
      cases_(cases),
      order_(order),
      tools_(std::move(tools)),
      secret_seed_(secret_seed),
      sandbox_missing_(std::move(sandbox_missing)) {}

Verdict Stages::verify(const Candidate& candidate, const OwnLimits& limits) const {
  Verdict verdict;
  {
    CandidateRun first(*this, candidate, limits);
    verdict = first.go();
    if (!verdict.is_harness_fault() || !first.worth_another_try()) return verdict;
  }
  log_debug(cat("candidate ", candidate.id, " is tried again: ", verdict.reason()));
  return CandidateRun(*this, candidate, limits).go();
}

}  // namespace tritonrl
