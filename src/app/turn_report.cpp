// SPDX-License-Identifier: Apache-2.0
#include "app/turn_report.h"

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

Json turn_metrics(const Verified& verified, const Scores& scores, const Scores& returns, int64_t turns) {
  Json line = Json::object();
  if (turns == 1) return line;
  std::map<int64_t, TurnRow> by_turn;
  Share first, last, best, mended, broken;
  for (size_t g = 0; g < scores.size(); ++g) {
    std::map<int64_t, std::vector<size_t>> trajectories;
    for (size_t r = 0; r < scores[g].size(); ++r) {
      trajectories[verified.groups[g].rollouts[r].trajectory].push_back(r);
      const Judged& judged = scores[g][r];
      if (!judged.reward) continue;
      TurnRow& turn = by_turn[judged.turn];
      turn.correct.add(judged.correct);
      turn.rewards.push_back(*judged.reward);
      if (returns[g][r].reward) turn.returns.push_back(*returns[g][r].reward);
    }
    for (const auto& [number, answers] : trajectories) {
      bool fault = false, any = false;
      for (size_t i = 0; i < answers.size(); ++i) {
        const Judged& judged = scores[g][answers[i]];
        fault |= !judged.reward;
        any |= judged.correct;
        if (i == 0 || !judged.reward) continue;
        bool before = scores[g][answers[i - 1]].correct;
        (before ? broken : mended).add(before != judged.correct);
      }
      if (fault) continue;
      first.add(scores[g][answers.front()].correct);
      last.add(scores[g][answers.back()].correct);
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
  line["turns/too_long"] = verified.too_long;
  return line;
}

std::string within_turns(const LevelMetrics& metrics) {
  if (metrics.correct_within.empty()) return "";
  const Rate& rate = metrics.correct_within.back();
  return cat(", ", rate.k, " of ", rate.n, " within ", metrics.correct_within.size(), " turns");
}

Json turn_fields(const Rollout& rollout, const Judged& credited, int64_t turns) {
  if (turns == 1) return Json::object();
  return {{"trajectory", rollout.trajectory},
          {"turn", rollout.turn},
          {"return", credited.reward ? Json(*credited.reward) : Json()},
          {"feedback", rollout.feedback}};
}

}  // namespace tritonrl
