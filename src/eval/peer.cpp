// SPDX-License-Identifier: Apache-2.0
#include "eval/peer.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/files/files.h"
#include "base/files/secure_hash.h"
#include "base/text.h"

namespace tritonrl {

Peer load_peer(const std::filesystem::path& path) {
  Json json = read_json(path);
  Peer peer;
  const char* hint = "bench/torch_compile.py writes such files";
  try {
    peer.name = json.at("peer").get<std::string>();
    if (json.contains("mode")) peer.name += cat(" (", json.at("mode").get<std::string>(), ")");
    for (const auto& [id, row] : json.at("tasks").items()) {
      if (row.contains("error")) continue;
      PeerTime time{row.at("ratio").get<double>(), row.at("low").get<double>(), row.at("high").get<double>(),
                    row.at("source").get<std::string>()};
      bool ordered = 0 < time.low && time.low <= time.ratio && time.ratio <= time.high && std::isfinite(time.high);
      if (!ordered) throw usage_error(cat("the ratio of task '", id, "' is not within its interval"), path.string());
      peer.times.emplace(id, std::move(time));
    }
  } catch (const Json::exception&) {
    throw usage_error("does not hold the times of a peer", path.string(), hint);
  }
  if (peer.times.empty()) throw usage_error("the peer has no time for any task", path.string(), hint);
  return peer;
}

void check_same_sources(const Peer& peer, const std::map<std::string, std::string>& source_by_task) {
  for (const auto& [id, source] : source_by_task) {
    auto it = peer.times.find(id);
    if (it == peer.times.end() || it->second.source == secure_hash(source)) continue;
    throw usage_error(cat(peer.name, " was timed on another source of task '", id, "'"), "",
                      "time it again on the task set that is evaluated");
  }
}

double speedup_over_peer(const Verdict& verdict, const PeerTime& peer) {
  double ratio = *verdict.speedup, half = 0;
  if (verdict.timing) {
    ratio = verdict.timing->ratio;
    bool interval = verdict.timing->ratio_low > 0 && verdict.timing->ratio_high > 0;
    half = interval ? std::log(verdict.timing->ratio_high / verdict.timing->ratio_low) / 2
                    : std::log1p(verdict.timing->noise_band);
  }
  double over = std::log(ratio / peer.ratio);
  return std::abs(over) <= std::hypot(half, std::log(peer.high / peer.low) / 2) ? 1 : std::exp(over);
}

namespace {

// Nothing where a correct sample has no time.
std::optional<PeerMetrics> beside(const Peer& peer, const std::vector<const EvalRecord*>& records) {
  PeerMetrics m;
  std::set<std::string> with, without;
  std::vector<double> over, of_peer;
  int64_t n = 0;
  for (const EvalRecord* record : records) {
    if (record->turn > 1 || record->verdict.is_harness_fault()) continue;
    auto time = peer.times.find(record->task_id);
    (time == peer.times.end() ? without : with).insert(record->task_id);
    if (time == peer.times.end()) continue;
    ++n;
    if (!record->verdict.correct()) continue;
    if (!record->verdict.speedup) return std::nullopt;
    over.push_back(speedup_over_peer(record->verdict, time->second));
  }
  if (n == 0) return std::nullopt;
  for (const std::string& id : with) of_peer.push_back(std::log(peer.times.at(id).ratio));
  m.tasks = static_cast<int64_t>(with.size());
  m.without = static_cast<int64_t>(without.size());
  m.peer_speedup = std::exp(mean(of_peer));
  auto above = [&](double p) { return std::ranges::count_if(over, [p](double s) { return s > p; }); };
  m.faster = {above(1), static_cast<int64_t>(over.size())};
  for (double p : kFastPs) m.fast.push_back({p, {above(p), n}});
  std::ranges::sort(over);  // The same bits whatever the order of the records.
  for (double& s : over) s = std::log(s);
  m.geometric_mean = std::exp(mean(over));
  return m;
}

}  // namespace

void compare_with_peer(const Peer& peer, const std::vector<EvalRecord>& records, ResultsRow* row) {
  row->peer = peer.name;
  for (auto& [level, metrics] : row->levels) {
    std::vector<const EvalRecord*> of;
    for (const EvalRecord& record : records) {
      if (level == "all" || level == cat(record.level)) of.push_back(&record);
    }
    metrics.peer = beside(peer, of);
  }
}

}  // namespace tritonrl
