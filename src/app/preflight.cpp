// SPDX-License-Identifier: Apache-2.0
#include "app/preflight.h"

#include <unistd.h>

#include "app/assemble.h"
#include "data/tasks/exclusion.h"
#include "model/device.h"
#include "model/files/safetensors.h"

namespace tritonrl {

namespace {

namespace fs = std::filesystem;

void check_model(const std::string& folder) {
  ModelConfig::load(folder);
  ModelFiles::open(folder);
  if (!fs::exists(fs::path(folder) / "tokenizer.json")) {
    throw usage_error("the model folder has no tokenizer.json", folder, "it belongs to the model: fetch it from there");
  }
}

void check_tasks(const Config& config) {
  for (const std::string& file : {config.data.train.file, config.data.rl.file, config.data.heldout.file}) {
    if (!file.empty() && !fs::exists(file)) throw usage_error("no such task set", file, "see `tritonrl data --help`");
  }
  if (!config.eval.tasks.empty() && !fs::exists(config.eval.tasks)) {
    throw usage_error("no such task set", config.eval.tasks, "eval.tasks names it");
  }
  load_exclusion(config.data.exclude);
  if (!config.eval.ids.empty()) find_data_file(config.eval.ids);
}

// The nearest folder that is there must take new entries.
void check_output(const fs::path& run) {
  std::error_code code;
  fs::path there = fs::absolute(run);
  while (!there.empty() && there != there.root_path() && !fs::exists(there, code)) there = there.parent_path();
  if (!fs::is_directory(there)) {
    throw environment_error("cannot create the run directory: a file is in its place", there.string(),
                            "choose another run.folder or run.name");
  }
  if (::access(there.c_str(), W_OK | X_OK) != 0) {
    throw environment_error("cannot create the run directory: no permission to write", there.string(),
                            "choose another run.folder: --set run.folder=FOLDER");
  }
}

}  // namespace

void check_can_start(const Config& config) {
  check_model(find_model(config.policy.model));
  PromptTemplate::load(find_data_file(config.data.prompt));
  check_tasks(config);
  check_choices(config);
  check_output(fs::path(config.run.folder) / config.run.name);
  open_device(config.policy.device);
  Verifier::check(config.verify);
}

}  // namespace tritonrl
