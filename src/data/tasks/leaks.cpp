// SPDX-License-Identifier: Apache-2.0
#include "data/tasks/leaks.h"

#include <algorithm>
#include <set>
#include <thread>
#include <unordered_map>

#include "base/error.h"
#include "base/parallel.h"
#include "base/text.h"
#include "data/python_source.h"

namespace tritonrl {
namespace {

// What two tasks are compared by; strings that are empty match nothing.
struct Keys {
  std::string id;
  std::vector<std::string> graphs;  // The one it was made from, that of the trace.
  std::string source, loose_source, loose_graph, outline;
  std::vector<std::string> lines;  // Sorted, each once.
};

Keys keys_of(const Task& task) {
  Keys keys;
  keys.id = task.id;
  if (task.graph_hash.rfind("graph:", 0) == 0) keys.graphs.push_back(task.graph_hash);
  if (!task.recorded.graph.empty()) keys.graphs.push_back(task.recorded.graph);
  keys.loose_graph = task.recorded.loose_graph;
  keys.outline = task.recorded.outline;
  keys.source = graph_hash_of_source(task.source);
  keys.loose_source = graph_hash_of_source(task.source, /*keep_constants=*/false);
  keys.lines = normal_lines(task.source);
  return keys;
}

using Index = std::unordered_map<std::string, std::vector<size_t>>;

}  // namespace

std::vector<Leak> find_leaks(const std::vector<Task>& train, const std::vector<Task>& heldout) {
  std::vector<Keys> known;
  Index exact, loose, outlines, by_line;
  for (size_t i = 0; i < heldout.size(); ++i) {
    known.push_back(keys_of(heldout[i]));
    const Keys& keys = known.back();
    for (const std::string& graph : keys.graphs) exact[graph].push_back(i);
    exact[keys.source].push_back(i);
    loose[keys.loose_source].push_back(i);
    if (!keys.loose_graph.empty()) loose[keys.loose_graph].push_back(i);
    if (!keys.outline.empty() && heldout[i].level >= 2) outlines[keys.outline].push_back(i);
    for (const std::string& line : keys.lines) by_line[line].push_back(i);
  }
  std::vector<Leak> leaks;
  std::vector<Keys> keys_of_train(train.size());
  parallel_for(train.size(), std::thread::hardware_concurrency(),
               [&](size_t i) { keys_of_train[i] = keys_of(train[i]); });
  std::vector<int64_t> shared(heldout.size());
  for (const Keys& keys : keys_of_train) {
    std::set<size_t> named;
    auto look = [&](const Index& index, const std::string& key, const char* kind) {
      auto it = index.find(key);
      if (key.empty() || it == index.end()) return;
      for (size_t i : it->second) {
        if (named.insert(i).second) leaks.push_back({kind, keys.id, known[i].id, 1});
      }
    };
    for (const std::string& graph : keys.graphs) look(exact, graph, "graph");
    look(exact, keys.source, "source");
    look(loose, keys.loose_graph, "constants");
    look(loose, keys.loose_source, "constants");
    look(outlines, keys.outline, "outline");
    if (keys.lines.size() < kMinLines) continue;
    std::vector<size_t> touched;
    for (const std::string& line : keys.lines) {
      auto it = by_line.find(line);
      if (it == by_line.end()) continue;
      for (size_t i : it->second) {
        if (shared[i]++ == 0) touched.push_back(i);
      }
    }
    std::sort(touched.begin(), touched.end());
    for (size_t i : touched) {
      double larger = static_cast<double>(std::max(keys.lines.size(), known[i].lines.size()));
      double overlap = static_cast<double>(shared[i]) / larger;
      shared[i] = 0;
      if (known[i].lines.size() < kMinLines || overlap < kNearOverlap) continue;
      if (named.insert(i).second) leaks.push_back({"near", keys.id, known[i].id, overlap});
    }
  }
  return leaks;
}

void refuse_leaks(const std::vector<Task>& train, const std::vector<Task>& heldout,
                  const std::vector<std::string>& kinds, const std::string& where) {
  std::vector<std::string> said;
  size_t count = 0;
  for (const Leak& leak : find_leaks(train, heldout)) {
    if (std::find(kinds.begin(), kinds.end(), leak.kind) == kinds.end()) continue;
    if (++count <= 5) said.push_back(cat(leak.train_id, " ~ ", leak.heldout_id, " (", leak.kind, ")"));
  }
  if (count == 0) return;
  throw usage_error(cat("the training set gives held-out tasks away: ", count, " pairs, e.g. ", join(said, ", ")),
                    where, "`tritonrl data check-split --clean FILE` writes the training set without them");
}

std::map<std::string, int64_t> count_leaks(const std::vector<Leak>& leaks) {
  std::map<std::string, int64_t> counts = {{"graph", 0}, {"source", 0}, {"constants", 0}, {"outline", 0}, {"near", 0}};
  for (const Leak& leak : leaks) ++counts[leak.kind];
  return counts;
}

}  // namespace tritonrl
