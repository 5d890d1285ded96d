// SPDX-License-Identifier: Apache-2.0
#include "eval/effects.h"

#include <cmath>
#include <set>

#include "base/rng.h"
#include "base/text.h"

namespace tritonrl {
namespace {

constexpr uint64_t kSeed = 20'250'117;
constexpr int kResamples = 2000;
constexpr double kNormal = 1.959964;  // Its 97.5th percentile.

using TaskValues = std::map<std::string, double>;

// Tasks that all have, and the mean of each over them.
TaskValues mean_of(const std::vector<const TaskValues*>& all) {
  TaskValues mean;
  for (const auto& [task, value] : *all[0]) {
    double sum = 0;
    bool everywhere = true;
    for (const TaskValues* one : all) {
      auto it = one->find(task);
      everywhere = everywhere && it != one->end();
      if (everywhere) sum += it->second;
    }
    if (everywhere) mean[task] = sum / static_cast<double>(all.size());
  }
  return mean;
}

// A signed sum of the settings that differ from a block in `changes`.
struct Contrast {
  std::vector<std::pair<AxisValues, double>> terms;
};

Effect effect_of(const std::vector<CellMeasure>& cells, const std::string& name, const Contrast& contrast) {
  std::map<AxisValues, std::vector<const TaskValues*>> by_setting;
  std::set<AxisValues> rests;
  for (const CellMeasure& cell : cells) {
    by_setting[cell.setting].push_back(&cell.tasks);
    AxisValues rest = cell.setting;
    for (const auto& [axis, value] : contrast.terms[0].first) rest.erase(axis);
    rests.insert(std::move(rest));
  }
  std::vector<TaskValues> blocks;
  for (const AxisValues& rest : rests) {
    TaskValues block;
    bool complete = true, first = true;
    for (const auto& [changes, sign] : contrast.terms) {
      AxisValues setting = rest;
      setting.insert(changes.begin(), changes.end());
      auto it = by_setting.find(setting);
      complete = complete && it != by_setting.end();
      if (!complete) break;
      TaskValues mean = mean_of(it->second), sum;
      for (const auto& [task, value] : mean) {
        auto before = block.find(task);
        if (first || before != block.end()) sum[task] = (first ? 0 : before->second) + sign * value;
      }
      block = std::move(sum);
      first = false;
    }
    if (complete && !block.empty()) blocks.push_back(std::move(block));
  }
  Effect effect;
  effect.name = name;
  if (blocks.empty()) return effect;
  std::vector<const TaskValues*> pointers;
  for (const TaskValues& block : blocks) pointers.push_back(&block);
  TaskValues common = mean_of(pointers);
  if (common.empty()) return effect;
  std::vector<std::vector<double>> table(blocks.size());  // By block and task.
  for (size_t b = 0; b < blocks.size(); ++b) {
    for (const auto& [task, mean] : common) table[b].push_back(blocks[b].at(task));
  }
  effect.blocks = static_cast<int64_t>(blocks.size());
  effect.tasks = static_cast<int64_t>(common.size());
  for (const auto& [task, value] : common) effect.difference += value / static_cast<double>(effect.tasks);
  Rng rng = Rng(kSeed).at(name);
  std::vector<double> means;
  std::vector<size_t> drawn(common.size());
  for (int i = 0; i < kResamples; ++i) {
    for (size_t& task : drawn) task = static_cast<size_t>(rng.below(effect.tasks));
    double sum = 0;
    for (int64_t b = 0; b < effect.blocks; ++b) {
      const auto& block = table[static_cast<size_t>(rng.below(effect.blocks))];
      for (size_t task : drawn) sum += block[task];
    }
    means.push_back(sum / static_cast<double>(effect.blocks * effect.tasks));
  }
  auto b = static_cast<double>(effect.blocks);
  double half = effect.blocks > 1 ? student_t_quantile(0.975, effect.blocks - 1) * std::sqrt(b / (b - 1)) : kNormal;
  half *= stddev(means);
  effect.interval = {effect.difference - half, effect.difference + half};
  return effect;
}

}  // namespace

Effect main_effect(const std::vector<CellMeasure>& cells, const std::string& axis, const std::string& base,
                   const std::string& value) {
  return effect_of(cells, cat(axis, " ", value), {{{{{axis, value}}, 1}, {{{axis, base}}, -1}}});
}

Effect interaction(const std::vector<CellMeasure>& cells, const std::string& axis_a, const std::string& base_a,
                   const std::string& value_a, const std::string& axis_b, const std::string& base_b,
                   const std::string& value_b) {
  auto at = [&](const std::string& a, const std::string& b) { return AxisValues{{axis_a, a}, {axis_b, b}}; };
  return effect_of(
      cells, cat(axis_a, " ", value_a, " x ", axis_b, " ", value_b),
      {{{at(value_a, value_b), 1}, {at(base_a, value_b), -1}, {at(value_a, base_b), -1}, {at(base_a, base_b), 1}}});
}

}  // namespace tritonrl
