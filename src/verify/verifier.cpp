// SPDX-License-Identifier: Apache-2.0
#include "verify/verifier.h"

#include <algorithm>
#include <future>
#include <thread>

#include "base/build_paths.h"
#include "base/error.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/text.h"
#include "verify/numa_pool.h"

namespace tritonrl {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTaskset = "/usr/bin/taskset";
constexpr int kLintAttempts = 3;  // A reference that ends the judge twice is known then.

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
  std::vector<std::string> devices = GpuLanes::devices();
  auto have = static_cast<int64_t>(devices.size());
  if (wanted > have) {
    throw environment_error(cat("verify.gpus is ", wanted, ", but this machine has ", have), "",
                            "-1 takes as many as there are, and the interpreter where there is none");
  }
  if (wanted >= 0) devices.resize(static_cast<size_t>(wanted));
  return devices;
}

// Null without GPUs.
std::unique_ptr<GpuLanes> open_lanes(int64_t wanted, std::shared_ptr<const TimingProtocol> timing) {
  std::vector<std::string> devices = chosen_gpus(wanted);
  return devices.empty() ? nullptr : GpuLanes::open(devices, std::move(timing));
}

void insist_on_sandbox(const std::vector<std::string>& missing, const VerifyConfig& config) {
  if (missing.empty() || config.allow_weaker_sandbox) return;
  throw environment_error(cat("this machine cannot put up the whole sandbox: ", join(missing, ", "), " missing"), "",
                          "see `tritonrl doctor`; --allow-weaker-sandbox goes on without, for code you trust");
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

Verifier::Verifier(std::unique_ptr<WorkerPool> pool, VerifyConfig config, VerifySeams seams,
                   std::vector<std::string> missing, std::unique_ptr<GpuLanes> lanes)
    : config_(std::move(config)),
      seams_(std::move(seams)),
      sandbox_missing_(std::move(missing)),
      pool_(std::move(pool)),
      lanes_(std::move(lanes)) {
  if (!seams_.cases) seams_.cases = std::make_shared<OriginalCases>(config_.seeds_per_case);
  if (!seams_.order) seams_.order = std::make_shared<InOrder>();
  if (!seams_.timing) seams_.timing = std::make_shared<PlainMean>();
  oracle_ = std::make_unique<OracleCache>(*pool_, config_.oracle_deadline_s, config_.memory_mb << 20);
  references_ = std::make_unique<ReferenceCache>(*pool_, config_.oracle_deadline_s, config_.memory_mb << 20);
  GpuTools gpu{lanes_.get(), references_.get(), seams_.timing.get()};
  funnel_ = std::make_unique<Funnel>(config_, *pool_, *oracle_, *seams_.cases, *seams_.order, secret_seed(config_.seed),
                                     sandbox_missing_, gpu);
}

std::unique_ptr<Verifier> Verifier::over(std::unique_ptr<WorkerPool> pool, VerifyConfig config, VerifySeams seams) {
  config.validate();
  return std::unique_ptr<Verifier>(new Verifier(std::move(pool), std::move(config), std::move(seams), {}));
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
    return [=](ZygoteKind kind) {
      fs::path script = fs::canonical(worker) / "zygote.py";
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
      return spawn_zygote(command);
    };
  };
  if (!seams.timing) seams.timing = std::make_shared<PlainMean>();
  auto opening = std::async(std::launch::async, [&] { return open_lanes(config.gpus, seams.timing); });
  double began = now_s();
  std::vector<std::string> nodes = numa_nodes();
  if (nodes.size() < 2 || !fs::exists(kTaskset)) nodes = {""};  // Nothing to pin.
  std::vector<std::future<std::unique_ptr<ZygotePool>>> coming;
  for (const std::string& cpus : nodes) {
    coming.push_back(std::async(std::launch::async, [&starter, cpus] { return ZygotePool::open(starter(cpus)); }));
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
  auto lanes = opening.get();
  return std::unique_ptr<Verifier>(
      new Verifier(std::move(pool), std::move(config), std::move(seams), std::move(missing), std::move(lanes)));
}

Finding Verifier::lint_on_gpu(const Task& task, const std::map<std::string, int64_t>& sizes,
                              TaskFindings* found) const {
  GpuTools tools{lanes_.get(), references_.get(), seams_.timing.get()};
  for (int attempt = 0;; ++attempt) {
    GpuPath path(tools, task, {{"full", sizes, false, 2}}, 1, Rng(1), Rng(2));
    Finding ended = path.lint(config_.oracle_deadline_s, found);
    if (!path.worth_another_try()) return ended;
    if (attempt == kLintAttempts - 1) throw environment_error(human_text(ended));
  }
}

int64_t Verifier::workers() const {
  if (config_.workers > 0) return config_.workers;
  return std::max<int64_t>(1, std::thread::hardware_concurrency());
}

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

void Verifier::verify_each(std::span<const Candidate> candidates,
                           const std::function<void(size_t index, Verdict verdict)>& on_verdict) {
  auto all = stream(on_verdict);
  for (size_t i = 0; i < candidates.size(); ++i) {
    all->submit(i, std::shared_ptr<const Candidate>(std::shared_ptr<void>(), &candidates[i]));  // The caller's.
  }
  all->finish();
}

std::unique_ptr<VerifyStream> Verifier::stream(VerifyStream::OnVerdict on_verdict, int64_t spare) {
  auto verify_one = [this](const Candidate& candidate) {
    try {
      return funnel_->verify(candidate);
    } catch (const Error& error) {
      return fault(candidate, error.message());
    } catch (const std::exception& error) {
      return fault(candidate, error.what());
    }
  };
  return std::make_unique<VerifyStream>(verify_one, std::move(on_verdict), workers(), spare);
}

SharedDevice* Verifier::shared_device(const std::string& name) { return lanes_ ? lanes_->shared(name) : nullptr; }

}  // namespace tritonrl
