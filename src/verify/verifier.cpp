// SPDX-License-Identifier: Apache-2.0
#include "verify/verifier.h"

#include <algorithm>
#include <future>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "base/process/build_paths.h"
#include "base/rng.h"
#include "base/text.h"
#include "verify/execute/interpret_executor.h"
#include "verify/execute/replay_executor.h"
#include "verify/sandbox/numa_pool.h"

namespace tritonrl {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTaskset = "/usr/bin/taskset";
constexpr int kLintAttempts = 3;         // A reference that ends the judge twice is known then.
constexpr int64_t kWorkersPerJudge = 8;  // An interpreted run takes far longer than its reference.

// Children learn weight seeds, which come from the same secret as the inputs. A guess at a configured seed can be held
// against one, but each guess costs this many dependent steps (about 30 ms of a core), and validate() leaves 2^32 of
// them at least. The seed goes into every step, so that no two of them end alike.
constexpr uint64_t kStretch = 1 << 21;

uint64_t stretched(uint64_t seed) {
  uint64_t key = seed;
  for (uint64_t i = 0; i < kStretch; ++i) key = Rng(key).at(seed + i).key();
  return Rng(key).at(seed).key();
}

int64_t secret_seed(int64_t configured) {
  if (configured != 0) return static_cast<int64_t>(stretched(static_cast<uint64_t>(configured)));
  return static_cast<int64_t>(std::stoull(random_hex(8), nullptr, 16) >> 1);
}

// The first `wanted` GPUs of this machine (-1 = all).
std::vector<std::string> chosen_gpus(int64_t wanted) {
  std::vector<std::string> devices = JudgeSlots::devices();
  auto have = static_cast<int64_t>(devices.size());
  if (wanted > have) {
    throw environment_error(cat("verify.gpus is ", wanted, ", but this machine has ", have), "",
                            "-1 takes as many as there are, and the interpreter where there is none");
  }
  if (wanted >= 0) devices.resize(static_cast<size_t>(wanted));
  return devices;
}

// Judges of each GPU; without any, enough on the processor for so many candidates at a time.
std::unique_ptr<JudgeSlots> open_judges(const std::vector<std::string>& gpus, const VerifyConfig& config,
                                        int64_t workers, std::shared_ptr<const TimingProtocol> timing) {
  std::vector<std::string> devices;  // Each GPU in turn, so that all of them get work first.
  for (int64_t i = 0; i < config.judges_per_gpu; ++i) devices.insert(devices.end(), gpus.begin(), gpus.end());
  if (!gpus.empty()) return JudgeSlots::open({devices, std::move(timing)});
  auto count = static_cast<size_t>((workers + kWorkersPerJudge - 1) / kWorkersPerJudge);
  return JudgeSlots::open({std::vector<std::string>(count, "cpu"), nullptr, false, config.memory_mb << 20});
}

void insist_on_sandbox(const std::vector<std::string>& missing, const VerifyConfig& config) {
  if (missing.empty() || config.allow_weaker_sandbox) return;
  throw environment_error(cat("this machine cannot put up the whole sandbox: ", join(missing, ", "), " missing"), "",
                          "see `tritonrl doctor`; --allow-weaker-sandbox continues without, for code you trust");
}

int64_t workers_of(const VerifyConfig& config) {
  return config.workers > 0 ? config.workers : std::max<int64_t>(1, std::thread::hardware_concurrency());
}

// Something of ours threw. The candidate has no verdict, and the others are none of its business.
Verdict fault(const Candidate& candidate, const std::string& what) {
  Verdict verdict;
  verdict.candidate_id = candidate.id;
  verdict.task_id = candidate.task.id;
  verdict.level = candidate.task.level;
  verdict.outcome = Outcome::kHarnessFault;
  verdict.stages = {{Stage::kExtract, 0, {Rule::kVerifierFailed, cat("verifying failed: ", what)}}};
  return verdict;
}

}  // namespace

Verifier::Verifier(std::unique_ptr<WorkerPool> pool, std::unique_ptr<JudgeSlots> judges, bool on_gpus,
                   VerifyConfig config, VerifySeams seams, std::vector<std::string> missing)
    : config_(std::move(config)),
      seams_(std::move(seams)),
      sandbox_missing_(std::move(missing)),
      pool_(std::move(pool)),
      judges_(std::move(judges)),
      on_gpus_(on_gpus) {
  if (!seams_.cases) seams_.cases = std::make_shared<OriginalCases>(config_.seeds_per_case);
  if (!seams_.order) seams_.order = std::make_shared<Staged>();
  if (!seams_.timing) seams_.timing = std::make_shared<PlainMean>();
  references_ = std::make_unique<ReferenceCache>(*pool_, config_.reference_deadline_s, config_.memory_mb << 20);
  stages_ = std::make_unique<Stages>(config_, *pool_, *seams_.cases, *seams_.order, tools(), secret_seed(config_.seed),
                                     sandbox_missing_);
}

ExecutionTools Verifier::tools() const {
  std::function<std::unique_ptr<Executor>()> executor;
  std::function<TargetGpu()> target = [gpu = typical_gpu(config_.arch)] { return gpu; };
  if (on_gpus_) {
    target = [this] { return judges_->next_target(); };
    executor = [this] { return std::make_unique<ReplayExecutor>(*judges_); };
  } else {
    InterpreterLimits limits{config_.memory_mb << 20, config_.max_programs, config_.reference_deadline_s};
    executor = [this, limits] { return std::make_unique<InterpretExecutor>(*pool_, *judges_, limits); };
  }
  return {config_.tolerance,
          judges_.get(),
          references_.get(),
          seams_.timing.get(),
          config_.call_rules == CallRules::kStrict,
          std::move(executor),
          std::move(target)};
}

std::unique_ptr<Verifier> Verifier::over(std::unique_ptr<WorkerPool> pool, std::unique_ptr<JudgeSlots> judges,
                                         VerifyConfig config, VerifySeams seams) {
  config.validate();
  return std::unique_ptr<Verifier>(
      new Verifier(std::move(pool), std::move(judges), false, std::move(config), std::move(seams), {}));
}

void Verifier::check(const VerifyConfig& config) {
  insist_on_sandbox(missing_protections(probe_sandbox(find_sandbox_files())), config);
  chosen_gpus(config.gpus);
}

std::unique_ptr<Verifier> Verifier::open(VerifyConfig config, VerifySeams seams) {
  config.validate();
  SandboxFiles files = find_sandbox_files();
  std::vector<std::string> missing = missing_protections(probe_sandbox(files));
  insist_on_sandbox(missing, config);
  if (!missing.empty()) log_warn(cat("weaker sandbox: ", join(missing, ", "), " missing"));
  fs::path worker = fs::path(source_dir()) / "worker";
  fs::path python = config.python.empty() ? fs::path(python_program()) : fs::path(config.python);
  bool weaker = config.allow_weaker_sandbox;
  auto starter = [=](const std::string& cpus) {
    return [=](ForkServerKind kind) {
      fs::path script = fs::canonical(worker) / "broker.py";
      std::vector<fs::path> visible{worker};
      std::vector<std::string> arguments{"-I", "-B"};
      if (fs::path bytecode = build_dir() + "/bytecode"; fs::exists(bytecode / "complete")) {
        visible.push_back(bytecode);
        arguments.insert(arguments.end(), {"-X", "pycache_prefix=" + fs::canonical(bytecode).string()});
      }
      arguments.insert(arguments.end(), {script.string(), "--mode", to_string(kind), "--sandbox-library",
                                         fs::canonical(files.library).string()});
      auto command = jail_command(files, weaker, python, visible, arguments);
      if (!cpus.empty()) command.insert(command.begin(), {kTaskset, "-c", cpus});
      return spawn_fork_server(command);
    };
  };
  if (!seams.timing) seams.timing = std::make_shared<PlainMean>();
  std::vector<std::string> gpus = chosen_gpus(config.gpus);
  auto opening =
      std::async(std::launch::async, [&] { return open_judges(gpus, config, workers_of(config), seams.timing); });
  double began = now_s();
  std::vector<std::string> nodes = numa_nodes();
  if (nodes.size() < 2 || !fs::exists(kTaskset)) nodes = {""};  // Nothing to pin.
  std::vector<std::future<std::unique_ptr<ForkServerPool>>> coming;
  for (const std::string& cpus : nodes) {
    coming.push_back(std::async(std::launch::async, [&starter, cpus] { return ForkServerPool::open(starter(cpus)); }));
  }
  std::vector<std::unique_ptr<WorkerPool>> pools;
  for (auto& one : coming) {
    auto pool = one.get();
    for (const auto& name : pool->missing()) {
      if (std::find(missing.begin(), missing.end(), name) == missing.end()) missing.push_back(name);
    }
    pools.push_back(std::move(pool));
  }
  auto pool = std::make_unique<NumaPool>(std::move(pools));
  log_debug(cat("the Python workers came up in ", human_seconds(now_s() - began)));
  insist_on_sandbox(missing, config);
  auto judges = opening.get();
  return std::unique_ptr<Verifier>(new Verifier(std::move(pool), std::move(judges), !gpus.empty(), std::move(config),
                                                std::move(seams), std::move(missing)));
}

Finding Verifier::find_flaws(const Task& task, const std::map<std::string, int64_t>& sizes, TaskFindings* found) const {
  return lint_case(task, {{"full", sizes}}, 0, false, true, found);
}

Finding Verifier::lint_case(const Task& task, const std::vector<CaseSpec>& cases, size_t index, bool other_seed,
                            bool drops, TaskFindings* found) const {
  ExecutionTools using_these = tools();
  for (int attempt = 0;; ++attempt) {
    Execution execution(using_these, task, cases, {kRecordSeed, kRecordSeed + 1}, Rng(1), Rng(2));
    Finding ended = execution.lint(config_.reference_deadline_s, found, index, other_seed, drops);
    if (!execution.worth_another_try()) return ended;
    if (attempt == kLintAttempts - 1) throw environment_error(human_text(ended));
  }
}

std::string Verifier::lint(const Task& task) const {
  // A single operation that nobody misses, or outputs that look odd, are no reason.
  static const std::set<std::string> kHarmless = {"drop", "uniform", "absolute", "noise_level"};
  std::vector<CaseSpec> cases;
  for (const CaseSpec& spec : seams_.cases->cases(task)) {
    if (!spec.additional) cases.push_back(spec);  // Additional ones are skipped where the reference cannot do them.
  }
  auto reference = record(task, cases);
  if (!reference->failure.empty()) return clean_message("unrecordable: " + reference->failure);
  for (size_t i = 0; i < cases.size(); ++i) {
    auto problem = [&](bool other_seed) {
      TaskFindings found;
      Finding ended = lint_case(task, cases, i, other_seed, false, &found);
      if (!ended.passed()) return "fails: " + human_text(ended);
      for (const auto& [flag, detail] : found.flags) {
        if (!kHarmless.count(flag)) return cat(flag, cat(" in case ", cases[i].name), ": ", detail);
      }
      return std::string();
    };
    std::string said = problem(false);
    // So few numbers may agree by chance once, hardly twice.
    if (cases[i].tiny && !said.empty()) said = problem(true);
    if (!said.empty()) return clean_message(said);
  }
  return "";
}

std::shared_ptr<const Reference> Verifier::record(const Task& task, const std::vector<CaseSpec>& cases) const {
  auto reference = references_->ask(task, cases, kRecordSeed, typical_gpu(config_.arch));
  if (reference->lost) reference = references_->ask(task, cases, kRecordSeed, typical_gpu(config_.arch));
  if (reference->lost) throw environment_error("the verifier's worker was lost: " + reference->failure);
  return reference;
}

int64_t Verifier::workers() const { return workers_of(config_); }

std::vector<Verdict> Verifier::verify(std::span<const Candidate> candidates,
                                      const std::function<void(int64_t done)>& progress) {
  std::vector<Verdict> verdicts(candidates.size());
  int64_t done = 0;
  verify_each(candidates, [&](size_t index, Verdict verdict) {
    verdicts[index] = std::move(verdict);
    if (progress) progress(++done);
  });
  return verdicts;
}

std::vector<Verdict> Verifier::verify_solutions(const std::vector<const Task*>& tasks,
                                                const std::function<void(int64_t done)>& progress) {
  std::vector<Candidate> candidates;
  for (const Task* task : tasks) candidates.push_back({task->id, *task, task->solution, true, false});
  return verify(candidates, progress);
}

void Verifier::verify_each(std::span<const Candidate> candidates,
                           const std::function<void(size_t index, Verdict verdict)>& on_verdict) {
  auto all = stream(on_verdict);
  for (size_t i = 0; i < candidates.size(); ++i) {
    all->submit(i, std::shared_ptr<const Candidate>(std::shared_ptr<void>(), &candidates[i]));  // The caller's.
  }
  all->finish();
}

std::unique_ptr<VerifyStream> Verifier::stream(VerifyStream::OnVerdict on_verdict, int64_t spare, OwnLimits limits) {
  auto verify_one = [this, limits = std::move(limits)](const Candidate& candidate) {
    try {
      return stages_->verify(candidate, limits);
    } catch (const Error& error) {
      return fault(candidate, error.message());
    } catch (const std::exception& error) {
      return fault(candidate, error.what());
    }
  };
  return std::make_unique<VerifyStream>(verify_one, std::move(on_verdict), workers(), spare);
}

SharedDevice* Verifier::shared_device(const std::string& name) { return on_gpus_ ? judges_->shared(name) : nullptr; }

}  // namespace tritonrl
