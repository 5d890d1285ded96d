// SPDX-License-Identifier: Apache-2.0
#include "app/assemble.h"

#include "ext/calibrated_timing/calibrated_timing.h"

namespace tritonrl {

namespace fs = std::filesystem;

std::unique_ptr<TaskSampler> make_task_sampler(const SamplerConfig& config, std::vector<Task> tasks) {
  if (config.type == "fixed_mix") return std::make_unique<FixedMix>(std::move(tasks), config);
  throw usage_error("sampler type '" + config.type + "' is not known", "data.sampler.type", "known: fixed_mix");
}

std::shared_ptr<const TimingProtocol> make_timing(const TimingConfig& config) {
  if (config.type == "plain") return std::make_shared<PlainMean>();
  if (config.type == "calibrated") return std::make_shared<calibrated_timing::CalibratedTiming>();
  throw usage_error("timing type '" + config.type + "' is not known", "timing.type", "known: plain, calibrated");
}

VerifySeams make_verify_seams(const Config& config) {
  VerifySeams seams;
  seams.timing = make_timing(config.timing);
  return seams;
}

std::unique_ptr<Credit> make_credit(const RlConfig& config) {
  if (config.credit == "best_of_n") return make_best_of_n(config.best_of_n);
  throw usage_error("credit '" + config.credit + "' is not known", "rl.credit", "known: best_of_n");
}

std::string find_data_file(const std::string& name) {
  if (fs::exists(name)) return name;
  fs::path in_source = fs::path(TRITONRL_SOURCE_DIR) / name;
  if (fs::exists(in_source)) return in_source.string();
  throw usage_error("no such file", name);
}

std::string find_model(const std::string& name) {
  if (fs::is_directory(name)) return name;
  fs::path in_source = fs::path(TRITONRL_SOURCE_DIR) / name;
  if (fs::is_directory(in_source)) return in_source.string();
  throw usage_error("no such model folder", name,
                    "policy.model names it; ./quickstart.sh or `tritonrl model import` bring the small model in");
}

PolicyConfig find_policy(const Config& config) {
  PolicyConfig policy = config.policy;
  policy.model = find_model(policy.model);
  return policy;
}

fs::path plotly_script() {
  fs::path script = fs::path(TRITONRL_SOURCE_DIR) / ".deps/pkg/plotly/plotly/package_data/plotly.min.js";
  return fs::exists(script) ? script : fs::path();
}

}  // namespace tritonrl
