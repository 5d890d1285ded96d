// SPDX-License-Identifier: Apache-2.0
#include "app/train/turn_report.h"

#include <map>

#include "base/stats.h"
#include "base/text.h"

namespace tritonrl {
namespace {

struct Share {
  int64_t k = 0, n = 0;
  void add(bool hit) {
    k += hit;
    ++n;
  }
  void put(Json* line, const std::string& name) const {
    if (n > 0) (*line)[name] = static_cast<double>(k) / static_cast<double>(n);
  }
};

struct TurnRow {
  Share correct;
  std::vector<double> rewards, returns;
};

}  // namespace

Json turn_metrics(const Rollouts& rollouts, int64_t turns) {
  Json line = Json::object();
  if (turns == 1) return line;
  std::map<int64_t, TurnRow> by_turn;
  Share first, last, best, mended, broken;
  for (const Group& group : rollouts.groups) {
    std::map<int64_t, std::vector<const Sample*>> trajectories;
    for (const Sample& sample : group.samples) {
      trajectories[sample.rollout.trajectory].push_back(&sample);
      if (!sample.reward) continue;
      TurnRow& turn = by_turn[sample.rollout.turn];
      turn.correct.add(sample.verdict.correct());
      turn.rewards.push_back(sample.reward->value);
      if (sample.to_go) turn.returns.push_back(sample.to_go->value);
    }
    for (const auto& [number, answers] : trajectories) {
      bool fault = false, any = false;
      for (size_t i = 0; i < answers.size(); ++i) {
        bool correct = answers[i]->verdict.correct();
        fault |= !answers[i]->reward;
        any |= correct;
        if (i == 0 || !answers[i]->reward) continue;
        bool before = answers[i - 1]->verdict.correct();
        (before ? broken : mended).add(before != correct);
      }
      if (fault) continue;
      first.add(answers.front()->verdict.correct());
      last.add(answers.back()->verdict.correct());
      best.add(any);
    }
  }
  for (const auto& [number, turn] : by_turn) {
    std::string name = cat("turn/", number, "/");
    line[name + "answers"] = turn.correct.n;
    turn.correct.put(&line, name + "correct_rate");
    line[name + "reward"] = mean(turn.rewards);
    if (!turn.returns.empty()) line[name + "return"] = mean(turn.returns);
  }
  line["pass_at_1"] = line["correct_rate"] = line.value("turn/1/correct_rate", 0.0);
  first.put(&line, "turns/correct_first");
  last.put(&line, "turns/correct_last");
  best.put(&line, "turns/correct_best");
  mended.put(&line, "turns/mended");
  broken.put(&line, "turns/broken");
  line["turns/too_long"] = rollouts.too_long;
  return line;
}

std::string within_turns(const LevelMetrics& metrics) {
  if (metrics.correct_within.empty()) return "";
  const Rate& rate = metrics.correct_within.back();
  return cat(", ", rate.k, " of ", rate.n, " within ", metrics.correct_within.size(), " turns");
}

}  // namespace tritonrl
