// SPDX-License-Identifier: Apache-2.0
#include "rollout/shared_work.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"

namespace tritonrl {
namespace {

constexpr const char* kFrom = "another rank";

Json to_json(const Sample& sample) {
  const Rollout& rollout = sample.rollout;
  return {{"tokens", rollout.tokens}, {"log_probs", rollout.log_probs}, {"finished", rollout.finished},
          {"text", rollout.text},     {"prompt", rollout.prompt},       {"trajectory", rollout.trajectory},
          {"turn", rollout.turn},     {"feedback", rollout.feedback},   {"verdict", to_json(sample.verdict)}};
}

Sample sample_of(const Json& json) {
  Sample sample;
  Rollout& rollout = sample.rollout;
  rollout.tokens = json.at("tokens").get<std::vector<int32_t>>();
  rollout.log_probs = json.at("log_probs").get<std::vector<float>>();
  rollout.finished = json.at("finished").get<bool>();
  rollout.text = json.at("text").get<std::string>();
  rollout.prompt = json.at("prompt").get<std::vector<int32_t>>();
  rollout.trajectory = json.at("trajectory").get<int64_t>();
  rollout.turn = json.at("turn").get<int64_t>();
  rollout.feedback = json.at("feedback").get<std::string>();
  sample.verdict = verdict_from_json(json.at("verdict"), kFrom);
  return sample;
}

std::string packed(const Json& json) {
  std::string bytes;
  Json::to_cbor(json, bytes);
  return bytes;
}

}  // namespace

std::vector<int64_t> SharedWork::owners(std::span<const Task> tasks) const {
  std::map<std::string_view, int64_t> owner;
  std::vector<int64_t> out;
  for (const Task& task : tasks) {
    auto next = static_cast<int64_t>(owner.size()) % size;
    out.push_back(owner.try_emplace(task.id, next).first->second);
  }
  return out;
}

std::vector<Task> SharedWork::mine(std::span<const Task> tasks) const {
  std::vector<Task> out;
  std::vector<int64_t> owner = owners(tasks);
  for (size_t t = 0; t < tasks.size(); ++t) {
    if (owner[t] == rank) out.push_back(tasks[t]);
  }
  return out;
}

Rollouts SharedWork::put_together(std::span<const Task> tasks, Rollouts own) const {
  if (size == 1) return own;
  const PhaseTimes& times = own.times;
  Json given = {{"groups", Json::array()},
                {"seconds", {times.rollout, times.verify, times.verify_alone, times.gave_way}},
                {"counts", {times.drawn, times.judged, own.tokens, own.too_long}}};
  for (const Group& group : own.groups) {
    Json samples = Json::array();
    for (const Sample& sample : group.samples) samples.push_back(to_json(sample));
    given["groups"].push_back(std::move(samples));
  }
  Rollouts all;
  all.times.wait_rollout = times.wait_rollout;
  all.times.wait_verify = times.wait_verify;
  all.times.idle = times.idle;
  all.staleness = own.staleness;
  std::vector<Json> of_rank;
  for (const std::string& bytes : gather(packed(given))) of_rank.push_back(Json::from_cbor(bytes));
  CHECK(static_cast<int64_t>(of_rank.size()) == size);
  for (const Json& theirs : of_rank) {
    const Json &seconds = theirs.at("seconds"), &counts = theirs.at("counts");
    double* longest[] = {&all.times.rollout, &all.times.verify, &all.times.verify_alone, &all.times.gave_way};
    int64_t* sums[] = {&all.times.drawn, &all.times.judged, &all.tokens, &all.too_long};
    for (size_t i = 0; i < 4; ++i) {
      *longest[i] = std::max(*longest[i], seconds.at(i).get<double>());
      *sums[i] += counts.at(i).get<int64_t>();
    }
  }
  std::vector<size_t> taken(of_rank.size());
  std::vector<int64_t> owner = owners(tasks);
  for (size_t t = 0; t < tasks.size(); ++t) {
    auto r = static_cast<size_t>(owner[t]);
    Group& group = all.groups.emplace_back(Group{tasks[t], {}});
    for (const Json& sample : of_rank[r].at("groups").at(taken[r]++)) group.samples.push_back(sample_of(sample));
  }
  return all;
}

std::vector<Verdict> SharedWork::put_together(size_t all, const std::vector<Verdict>& own) const {
  if (size == 1) return own;
  Json given = Json::array();
  for (const Verdict& verdict : own) given.push_back(tritonrl::to_json(verdict));
  std::vector<Verdict> out(all);
  auto of_rank = gather(packed(given));
  for (size_t r = 0; r < of_rank.size(); ++r) {
    size_t i = r;
    for (const Json& verdict : Json::from_cbor(of_rank[r])) {
      out.at(i) = verdict_from_json(verdict, kFrom);
      i += of_rank.size();
    }
  }
  return out;
}

}  // namespace tritonrl
