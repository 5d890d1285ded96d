// SPDX-License-Identifier: Apache-2.0
// Where names from the config become objects: one choice a seam. Extensions register here and nowhere else.
#pragma once

#include <memory>
#include <vector>

#include "app/config.h"
#include "data/tasks/task_sampler.h"
#include "rollout/late_limits.h"
#include "rollout/rollout_source.h"
#include "train/rewards.h"

namespace tritonrl {

// What the verifier is opened with. Throws Error (usage) for a type that is not known.
VerifySeams make_verify_seams(const Config& config);
// The same config with the extensions that decide about a verdict and its time.
Config with_every_extension(Config config);
std::unique_ptr<Credit> make_credit(const RlConfig& config);

// How conversations go while training and while evaluating. Throws Error (usage) for a bad data.feedback, which is read
// only where there is more than one turn.
TurnRules rl_turns(const Config& config);
TurnRules eval_turns(const Config& config);
RolloutRules rollout_rules(const Config& config);
RewardRules reward_rules(const Config& config);
LateLimits make_late_limits(const Config& config);

// Throws Error (usage) when one of the names above means nothing, with no tasks at hand.
void check_choices(const Config& config);
// A file that comes with the program ("prompts/triton.txt"): as given, or else relative to the source tree.
// Throws Error (usage).
std::string find_data_file(const std::string& name);
// A model's folder: as given, or else relative to the source tree. Throws Error (usage).
std::string find_model(const std::string& name);
// config.policy with the model's folder found. Throws Error (usage).
PolicyConfig find_policy(const Config& config);

}  // namespace tritonrl
