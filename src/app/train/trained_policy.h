// SPDX-License-Identifier: Apache-2.0
// TrainedPolicy: the policy of a run, with the checkpoint it is at.
//
// Policies have names: "base" (the model), "fresh" (with an adapter that changes nothing, or policy.adapter), "sft",
// "rl_N" (behind step N), each but the first two a checkpoint. Everything is opened on first need, so that a finished
// run starts and ends at once. Thread rule: one thread; snapshots of get() may be used by others.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/config.h"
#include "app/train/checkpoints.h"
#include "base/files/run_dir.h"
#include "base/process/shared_device.h"
#include "train/ranks.h"

namespace tritonrl {

class TrainedPolicy {
 public:
  // Borrows all of them. Where there are several ranks, all of them call load and what trains; checkpoints are written
  // by the first alone and brought to the others as they need them.
  TrainedPolicy(const Config& config, RunDir& run, Checkpoints& checkpoints, Ranks& ranks, const Rng& rng);

  Policy& get();
  // The policy becomes the one of that name; "rl" = that of the last step.
  void attach(std::string name);
  // Training continues from this adapter, a fresh one or a checkpoint's; `attach` finds no difference.
  void set_adapter(LoraAdapter adapter);
  // Of the name it was attached or saved under last.
  const std::string& name() const { return name_; }
  LoraAdapter fresh();
  // Throws Error (usage) where it is damaged or of another base model.
  LoraAdapter load(const std::string& name);
  // Saves what is trained under that name.
  void save(const std::string& name, const AdamW* optimizer = nullptr);

  // The optimizer that continues over steps, as it was saved with the checkpoint that is attached.
  AdamW& optimizer();
  // The policy that RL begins with: its name, and its adapter (null = the base model).
  std::string rl_start() const { return config_.sft.enabled ? "sft" : "fresh"; }
  const LoraAdapter* reference();
  double sampling_temperature() const;

  struct Update {
    std::string phase;  // Of the lines in steps.jsonl.
    std::string what;   // Names the progress bar.
    std::string memory_setting;
    AdamW* optimizer = nullptr;  // Null = a fresh one.
    // Of supervised fine-tuning that can be stopped and continued.
    int64_t from_update = 0;
    std::function<std::string()> unit = {};  // Of the lines in steps.jsonl, where it is not the phase.
    std::function<void(const UpdateReport&)> after = {};
    // Examples that come as they are needed, in place of a list: so many updates.
    NextExamples next = {};
    int64_t updates = 0;
    // Where somebody else takes measurements on the policy's device meanwhile.
    SharedDevice* device = nullptr;
  };
  // Trains on examples of either kind, or on those that how.next() gives, with a progress bar and a line an update.
  // Throws Interrupted when asked to stop.
  TrainSummary train_on(const std::vector<TrainExample>& examples, const TrainConfig& config, const Rng& rng,
                        const Update& how);
  // Of the last update, before clipping.
  double grad_norm() const { return grad_norm_; }

 private:
  std::filesystem::path model_folder();
  void fetch(const std::string& name);

  const Config& config_;
  RunDir& run_;
  Checkpoints& checkpoints_;
  Ranks& ranks_;
  Rng rng_;
  std::optional<Policy> policy_;
  std::optional<AdamW> optimizer_;        // Of the attached adapter, where it is kept over steps.
  std::optional<LoraAdapter> reference_;  // The policy that RL began with.
  std::string name_;
  double grad_norm_ = 0;
};

}  // namespace tritonrl
