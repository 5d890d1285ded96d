// SPDX-License-Identifier: Apache-2.0
#include "data/synth.h"

#include <algorithm>
#include <array>
#include <iomanip>
#include <set>

#include "base/check.h"
#include "base/error.h"
#include "base/text.h"
#include "data/fusion.h"

namespace tritonrl {

namespace {

constexpr int64_t kTriesPerTask = 200;

std::array<int64_t, kFamilyCount> weights_of(const FamilyWeights& w) {
  return {w.elementwise, w.reduction, w.softmax, w.norm, w.gemm};
}

// A family by weight among those that may still be drawn; -1 when there is none.
int pick_family(const std::array<int64_t, kFamilyCount>& weights, const std::array<bool, kFamilyCount>& open,
                Rng& rng) {
  int64_t total = 0;
  for (int f = 0; f < kFamilyCount; ++f) total += open[f] ? weights[f] : 0;
  if (total == 0) return -1;
  int64_t draw = rng.below(total);
  for (int f = 0; f < kFamilyCount; ++f) {
    draw -= open[f] ? weights[f] : 0;
    if (draw < 0) return f;
  }
  CHECK(false) << "weights do not add up";
  return -1;
}

using Sizes = std::map<std::string, int64_t>;

// Different dimensions never have the same size, so that a kernel cannot mistake one for another unseen.
Sizes draw_sizes(const Recipe& recipe, Rng& rng, bool tiny) {
  if (recipe.family == Family::kGemm) {
    std::vector<int64_t> all = tiny ? std::vector<int64_t>{3, 5, 7} : std::vector<int64_t>{16, 24, 32, 40, 48, 56, 64};
    rng.shuffle(all);
    return {{"M", all[0]}, {"N", all[1]}, {"K", all[2]}};
  }
  bool flat = recipe.family == Family::kElementwise;
  int64_t programs = rng.pick(tiny ? std::vector<int64_t>{3, 5} : std::vector<int64_t>{4, 8, 12, 16, 24, 32});
  int64_t length = rng.pick(tiny   ? std::vector<int64_t>{7, 9, 11}
                            : flat ? std::vector<int64_t>{64, 100, 128, 200, 256, 300, 500, 512}
                                   : std::vector<int64_t>{64, 100, 128, 200, 256, 300, 500, 512, 600, 1000});
  if (recipe.core.first_dim) return {{"M", length}, {"N", programs}};
  return {{"M", programs}, {"N", length}};
}

Task make_task(const SynthConfig& config, const Recipe& recipe, int level, int64_t number, Rng rng) {
  std::ostringstream id;
  id << "synth/" << level << "/" << std::setw(6) << std::setfill('0') << number;
  Task task;
  task.id = id.str();
  task.level = level;
  task.name = recipe.name();
  task.source = recipe.source(draw_sizes(recipe, rng, false));
  task.solution = recipe.solution();
  task.graph_hash = recipe.graph().hash();
  task.tiny = draw_sizes(recipe, rng, true);
  task.origin = cat("synth seed ", config.seed);
  task.licence = "Apache-2.0";
  return task;
}

void add_level1(const SynthConfig& config, int64_t count, Rng rng, std::vector<Task>& tasks) {
  std::array<std::vector<Recipe>, kFamilyCount> pools;
  for (Recipe& recipe : level1_recipes(config)) pools[static_cast<size_t>(recipe.family)].push_back(std::move(recipe));
  Rng order = rng.at("order"), families = rng.at("families"), sizes = rng.at("sizes");
  for (auto& pool : pools) order.shuffle(pool);
  std::array<size_t, kFamilyCount> used{};
  for (int64_t i = 0; i < count; ++i) {
    std::array<bool, kFamilyCount> open{};
    for (size_t f = 0; f < kFamilyCount; ++f) open[f] = used[f] < pools[f].size();
    int family = pick_family(weights_of(config.families), open, families);
    if (family < 0) {  // Every graph was used: again, at other sizes.
      used = {};
      --i;
      continue;
    }
    auto f = static_cast<size_t>(family);
    tasks.push_back(make_task(config, pools[f][used[f]++], 1, i, sizes.at(static_cast<uint64_t>(i))));
  }
}

void add_level2(const SynthConfig& config, int64_t count, Rng rng, std::vector<Task>& tasks) {
  std::array<bool, kFamilyCount> open;
  open.fill(true);
  std::set<std::string> seen;
  for (const Recipe& recipe : level1_recipes(config)) seen.insert(recipe.graph().hash());
  Rng sizes = rng.at("sizes");
  for (int64_t i = 0; i < count; ++i) {
    Rng draws = rng.at("recipes").at(static_cast<uint64_t>(i));
    bool found = false;
    for (int64_t attempt = 0; attempt < kTriesPerTask && !found; ++attempt) {
      int family = pick_family(weights_of(config.families), open, draws);
      auto recipe =
          draw_fusion(static_cast<Family>(family), config.operators == OperatorSet::kAll, config.max_steps, draws);
      if (!recipe || !seen.insert(recipe->graph().hash()).second) continue;
      tasks.push_back(make_task(config, *recipe, 2, i, sizes.at(static_cast<uint64_t>(i))));
      found = true;
    }
    if (!found) {
      throw usage_error(cat("found only ", i, " of ", count, " different level-2 tasks"), "data.synth",
                        "ask for fewer, give more families a weight, or set operators: all");
    }
  }
}

}  // namespace

void FamilyWeights::validate() const {
  int64_t total = 0;
  for (int64_t weight : weights_of(*this)) {
    if (weight < 0 || weight > 1000) throw usage_error("family weights must be 0 to 1000");
    total += weight;
  }
  if (total == 0) throw usage_error("every family has weight 0", "", "give at least one family a weight");
}

void SynthConfig::validate() const {
  if (max_steps < 2 || max_steps > 8) throw usage_error("max_steps must be 2 to 8");
}

std::vector<Recipe> level1_recipes(const SynthConfig& config) {
  auto weights = weights_of(config.families);
  std::vector<Recipe> recipes;
  std::set<std::string> seen;
  for (Recipe& recipe : all_single_operations(config.operators == OperatorSet::kAll)) {
    if (weights[static_cast<size_t>(recipe.family)] > 0 && seen.insert(recipe.graph().hash()).second) {
      recipes.push_back(std::move(recipe));
    }
  }
  return recipes;
}

std::vector<Task> synthesise(const SynthConfig& config, int64_t count_level1, int64_t count_level2) {
  CHECK(count_level1 >= 0 && count_level2 >= 0) << count_level1 << " and " << count_level2 << " tasks";
  config.validate();
  config.families.validate();
  std::vector<Task> tasks;
  Rng rng(static_cast<uint64_t>(config.seed));
  add_level1(config, count_level1, rng.at("level1"), tasks);
  add_level2(config, count_level2, rng.at("level2"), tasks);
  return tasks;
}

}  // namespace tritonrl
