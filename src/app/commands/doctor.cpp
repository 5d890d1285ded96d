// SPDX-License-Identifier: Apache-2.0
// doctor: can this machine do the job? One line a check, and what to do about those that fail.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>

#include "app/assemble.h"
#include "app/commands/commands.h"
#include "app/train/pipeline.h"
#include "base/log.h"
#include "base/process/build_paths.h"
#include "base/process/cuda_driver.h"
#include "model/cpu/kernels.h"
#include "model/cuda/kernels.h"
#include "model/device.h"
#include "model/model_config.h"
#include "verify/sandbox/sandbox.h"

namespace tritonrl {

namespace {

// A task and a solution of its own: proves that recording, compiling, interpreting and comparing work here.
const char* const kTask = R"(import torch
import torch.nn as nn

N = 300

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2.0

def get_inputs():
    return [torch.randn(N)]

def get_init_inputs():
    return []
)";
const char* const kSolution = R"(import torch
import triton
import triton.language as tl

@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, i < n)
    tl.store(y + i, tl.maximum(v, 0.0) * FACTOR, i < n)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 128),)](x, y, x.numel(), BLOCK=128)
        return y
)";

class Doctor {
 public:
  void check(const std::string& name, bool ok, const std::string& detail, const std::string& advice = "") {
    std::cout << (ok ? "  ok    " : "  FAIL  ") << name << ": " << detail << "\n";
    if (!ok && !advice.empty()) std::cout << "        -> " << advice << "\n";
    failed_ |= !ok;
  }
  void note(const std::string& name, const std::string& detail) {
    std::cout << "  --    " << name << ": " << detail << "\n";
  }
  bool failed() const { return failed_; }

 private:
  bool failed_ = false;
};

void check_sandbox(Doctor& doctor, const VerifyConfig&) {
  auto protections = probe_sandbox(find_sandbox_files());
  auto missing = missing_protections(protections);
  std::vector<std::string> active;
  for (const auto& p : protections) {
    if (p.active) {
      active.push_back(p.name);
    } else {
      doctor.note("sandbox without " + p.name, p.reason);
    }
  }
  doctor.check("sandbox", missing.empty(), missing.empty() ? join(active, ", ") : "missing " + join(missing, ", "),
               "allow unprivileged user namespaces, or accept less with --allow-weaker-sandbox");
}

void check_verifier(Doctor& doctor, const VerifyConfig& config) {
  auto verifier = Verifier::open(config, make_verify_seams({}));
  if (const JudgeSlots* gpus = verifier->gpus()) {
    for (size_t i = 0; i < gpus->size(); ++i) {
      const DeviceInfo& info = gpus->info(i);
      std::vector<std::string> noise;
      for (const auto& [seconds, band] : info.noise) {
        noise.push_back(cat(fixed(100 * band, 2), " % at ", human_seconds(seconds)));
      }
      doctor.note("verifying on " + info.device,
                  cat(info.name, " (sm_", info.gpu.arch, "), ", fixed(info.bandwidth / 1e12, 2),
                      " TB/s copied; a ratio of equals is off by ", join(noise, ", ")));
    }
  }
  auto judge = [&](const std::string& factor, bool want) {
    Candidate candidate;
    candidate.id = "doctor";
    candidate.task.id = "doctor";
    candidate.task.source = kTask;
    candidate.task.tiny = {{"N", 5}};
    candidate.text = replace_all(kSolution, "FACTOR", factor);
    candidate.is_code = true;
    double start = now_s();
    Verdict verdict = verifier->verify({&candidate, 1}).at(0);
    std::string detail =
        cat(to_string(verdict.outcome), " at ", to_string(verdict.stopped_at), " in ", human_seconds(now_s() - start));
    if (!verdict.reason().empty() && want) detail += ": " + verdict.reason();
    bool ok = want ? verdict.correct() : verdict.outcome == Outcome::kWrongOutput;
    doctor.check(want ? "verifier accepts a right kernel" : "verifier rejects a wrong one", ok, detail);
  };
  judge("2.0", true);
  judge("2.001", false);
}

}  // namespace

void add_doctor(CLI::App& app, Run& run) {
  auto* command = app.add_subcommand("doctor", "check compiler, Triton, sandbox, GPU, disk and model");
  auto arguments = std::make_shared<ConfigArguments>();
  arguments->add_to(*command);
  arguments->add_weaker_to(*command);
  command->callback([=, &run] {
    run = [=] {
      Config config = arguments->load();
      Doctor doctor;
      Json env = environment();
      doctor.note("program",
                  cat(env["program"].get<std::string>(), ", ", env["compiler"].get<std::string>(), ", torch ",
                      env["torch"].get<std::string>(), ", triton ", env["triton"].get<std::string>()));
      doctor.note("processor", cat(env["processor"].get<std::string>(), ", ", env["cores"].dump(), " cores, ",
                                   human_bytes(env["memory_bytes"].get<double>()), ", kernels: ", cpu::kernels().name));
      doctor.check("python", ::access(python_program().c_str(), X_OK) == 0, "the environment of tools/setup.sh",
                   "run tools/setup.sh");
      if (has_cuda_driver()) {
        auto device = open_device("auto");
        const int driver = driver_cuda_version();
        doctor.note("driver",
                    driver > 0 ? cat("for CUDA ", driver / 1000, ".", driver % 1000 / 10) : "says no version");
        if (auto problem = load_cuda_backend()) doctor.check("gpu", false, problem->message(), problem->hint());
        if (device.is_cuda()) {
          doctor.check("gpu", true, env["gpu"].is_string() ? env["gpu"].get<std::string>() : "found");
          doctor.note("CUDA kernels", cuda::kernels(device) ? "ours" : "none of ours: ATen's, slower");
        }
      } else {
        doctor.note("gpu",
                    "none: training runs on the processor, correctness is decided by Triton's interpreter, time is not "
                    "measured");
      }
      std::error_code code;
      auto space = std::filesystem::space(".", code);
      doctor.check("disk", !code && space.available > (2ull << 30),
                   human_bytes(static_cast<double>(space.available)) + " free here", "a run needs about 1 GiB");
      try {
        std::string folder = find_model(config.policy.model);
        ModelConfig::load(folder);
        doctor.check("model", true, folder);
      } catch (const Error& e) {
        doctor.check("model", false, e.where() + ": " + e.message(), e.hint());
      }
      for (auto* check : {&check_sandbox, &check_verifier}) {
        try {
          check(doctor, config.verify);
        } catch (const Error& e) {
          doctor.check("verifier", false, e.message(), e.hint());
        }
      }
      std::cout << (doctor.failed() ? "something needs attention\n" : "ready\n");
      return doctor.failed() ? 3 : 0;
    };
  });
}

}  // namespace tritonrl
