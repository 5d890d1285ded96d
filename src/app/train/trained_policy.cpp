// SPDX-License-Identifier: Apache-2.0
#include "app/train/trained_policy.h"

#include <set>

#include "app/assemble.h"
#include "app/device_memory.h"
#include "app/train/step_metrics.h"
#include "base/log.h"
#include "base/process/interrupt.h"
#include "base/process/memory.h"
#include "base/text.h"
#include "model/device.h"

namespace tritonrl {

namespace fs = std::filesystem;

TrainedPolicy::TrainedPolicy(const Config& config, RunDir& run, Checkpoints& checkpoints, Ranks& ranks, const Rng& rng)
    : config_(config), run_(run), checkpoints_(checkpoints), ranks_(ranks), rng_(rng) {}

Policy& TrainedPolicy::get() {
  if (!policy_) {
    policy_.emplace(Policy::open(find_policy(config_), PromptTemplate::load(find_data_file(config_.data.prompt))));
    name_ = "base";
  }
  return *policy_;
}

fs::path TrainedPolicy::model_folder() { return fs::canonical(get().config().model); }

LoraAdapter TrainedPolicy::fresh() {
  const std::string& folder = config_.policy.adapter;
  if (folder.empty()) return LoraAdapter::create(get().weights(), config_.lora, rng_.at("lora"));
  LoraAdapter adapter = LoraAdapter::load(folder, get().weights());
  auto what = [](const LoraConfig& lora) {
    if (lora.full) return std::string("a whole model");
    std::set<std::string> targets(lora.targets.begin(), lora.targets.end());
    return cat("an adapter of rank ", lora.rank, ", alpha ", lora.alpha, " of ",
               join(std::vector<std::string>(targets.begin(), targets.end()), ", "));
  };
  const std::string theirs = what(adapter.config), ours = what(config_.lora);
  if (theirs != ours) {
    throw usage_error(cat("policy.adapter is ", theirs, "; lora says ", ours), folder,
                      "give the section lora what the folder has");
  }
  return adapter;
}

// Rank 0's checkpoint to the other ranks, one file after the other.
void TrainedPolicy::fetch(const std::string& name) {
  if (ranks_.size() == 1) return;
  fs::path folder = checkpoints_.path(name);
  std::vector<std::string> files;
  if (ranks_.first() && fs::exists(folder)) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.is_regular_file()) files.push_back(entry.path().filename().string());
    }
  }
  files = split(ranks_.from_first(join(files, "\n")), '\n');
  if (!ranks_.first()) fs::remove_all(folder);
  if (!ranks_.first()) fs::create_directories(folder);
  for (const std::string& file : files) {
    if (file.empty()) continue;
    std::string bytes = ranks_.from_first(ranks_.first() ? read_file(folder / file) : "");
    if (!ranks_.first()) write_file(folder / file, bytes);
  }
}

LoraAdapter TrainedPolicy::load(const std::string& name) {
  fetch(name);
  check_checkpoint(checkpoints_.path(name), model_folder());
  return LoraAdapter::load(checkpoints_.path(name).string(), get().weights());
}

void TrainedPolicy::set_adapter(LoraAdapter adapter) {
  get().set_adapter(std::move(adapter));
  get().adapter().config.dropout = config_.lora.dropout;
}

void TrainedPolicy::attach(std::string name) {
  if (name == "rl") name = cat("rl_", config_.rl.steps);
  if (name == name_) return;
  optimizer_.reset();  // It was that of the adapter that goes.
  if (name == "base") {
    get().remove_adapter();
  } else {
    set_adapter(name == "fresh" ? fresh() : load(name));
  }
  name_ = name;
}

void TrainedPolicy::save(const std::string& name, const AdamW* optimizer) {
  name_ = name;
  if (!ranks_.first()) return;
  checkpoints_.save(name, model_folder(), [&](const fs::path& folder) {
    get().adapter().save(folder.string(), model_folder().string());
    for (const char* file : {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"}) {
      fs::path from = model_folder() / file;
      if (fs::exists(from)) write_file(folder / file, read_file(from));
    }
    if (optimizer) optimizer->save((folder / "optimizer.safetensors").string());
  });
}

AdamW& TrainedPolicy::optimizer() {
  if (!optimizer_) {
    optimizer_.emplace(config_.rl.train.optimizer, get().adapter().parameters());
    fs::path file = checkpoints_.path(name_) / "optimizer.safetensors";
    if (fs::exists(file)) optimizer_->load(file.string());
  }
  return *optimizer_;
}

const LoraAdapter* TrainedPolicy::reference() {
  if (!config_.sft.enabled && config_.policy.adapter.empty()) return nullptr;
  if (!reference_) reference_ = config_.sft.enabled ? load(rl_start()) : fresh();
  return &*reference_;
}

double TrainedPolicy::sampling_temperature() const {
  return config_.rl.sampling.temperature > 0 ? config_.rl.sampling.temperature : 1;
}

TrainSummary TrainedPolicy::train_on(const std::vector<TrainExample>& examples, const TrainConfig& config,
                                     const Rng& rng, const Update& how) {
  const std::string line_phase = how.unit ? how.phase : how.phase + "/update";
  SharedDevice::Use use(how.device);
  std::optional<Progress> bar;
  TrainHooks hooks = [&](const UpdateReport& r) {
    if (!bar) bar.emplace(how.what, r.steps, "steps");
    grad_norm_ = r.grad_norm;
    double rate = static_cast<double>(r.tokens) / r.seconds;
    bar->update(r.step, cat("loss ", fixed(r.loss, 3), ", ", fixed(rate, 0), " tokens/s"));
    Json line = {{"phase", line_phase},
                 {"unit", how.unit ? how.unit() : how.phase},
                 {"step", r.step},
                 {"loss", r.loss},
                 {"lr", r.lr},
                 {"grad_norm", r.grad_norm},
                 {"tokens", r.tokens},
                 {"tokens_per_s", rate},
                 {"memory/resident_bytes", resident_bytes()},
                 {"seconds", r.seconds}};
    add_policy_metrics(r.policy, &line);
    run_.steps().write(line);
    if (how.after) how.after(r);
    return true;
  };
  if (ranks_.size() > 1) hooks.ranks = &ranks_;
  if (how.device) {
    hooks.on_part = [&] {
      wait_for(get().weights().device);
      use.give_way();
    };
  }
  TrainSummary summary = with_memory_advice(how.what, how.memory_setting, [&] {
    if (how.next)
      return train_streamed(get(), how.updates, how.next, config, rng, hooks, how.optimizer, how.from_update);
    if (!examples.front().has_advantages()) {
      return train(get(), examples, config, rng, hooks, how.optimizer, how.from_update);
    }
    PolicyUpdate policy;
    policy.loss = config_.rl.loss;
    policy.temperature = sampling_temperature();
    policy.longest_answer = config_.rl.sampling.max_new_tokens;
    if (policy.loss.kl_in == KlIn::kReward) policy.loss.kl = 0;  // It is in the advantages.
    if (policy.loss.kl > 0) policy.reference = reference();
    return train_policy(get(), examples, config, policy, rng, hooks, how.optimizer);
  });
  if (interrupted()) throw Interrupted();
  return summary;
}

}  // namespace tritonrl
