// SPDX-License-Identifier: Apache-2.0
// GraphStream: an endless, deterministic stream of tasks from random operator graphs, no graph twice.
//
// Task number i is a function of the configuration, i, and the hashes of the tasks before it: a stream that is told
// those hashes goes on exactly where another one stopped. Nothing but 16 bytes a task is kept.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/config.h"
#include "data/task.h"

namespace tritonrl::graphs {

enum class SizeRange { kSmall, kGpu };
constexpr auto enum_names(SizeRange) { return std::array{"small", "gpu"}; }

struct GraphSynthConfig {
  int64_t seed = 7;
  SizeRange sizes = SizeRange::kSmall;                       // small: a launch is 32 programs or fewer.
  std::vector<std::string> dtypes = {"float32", "float16"};  // bfloat16 can be verified on a GPU only.
  double level1_share = 0.25;                                // Tasks of one compute node.
  int64_t max_nodes = 6;  // Of the largest graph; each further node is drawn with continue_share.
  double continue_share = 0.6;
  double fusion_share = 0.3;  // Of the tasks above level 1: those that begin with a named fusion.
  bool only_covered = false;  // Leave out tasks without a solution.
  template <class V>
  void for_each_field(V& v) {
    v("seed", seed, "names the whole stream");
    v("sizes", sizes, "small = for Triton's interpreter; gpu = 1e6 to 1e8 elements");
    v("dtypes", dtypes, "float32, float16, bfloat16; the last can be verified on a GPU only");
    v("level1_share", level1_share, "share of tasks with one compute node");
    v("max_nodes", max_nodes, "compute nodes of the largest graph");
    v("continue_share", continue_share, "chance of a third, fourth ... node");
    v("fusion_share", fusion_share, "share of level-2 tasks that begin with a named fusion");
    v("only_covered", only_covered, "leave out tasks that have no solution");
  }
  void validate() const;
};

class GraphStream {
 public:
  explicit GraphStream(const GraphSynthConfig& config);
  // The next task. Throws Error (usage) when no new graph can be found.
  Task next();
  // Goes past a task made before, given its graph hash.
  void skip(const std::string& graph_hash);
  int64_t position() const { return position_; }

 private:
  struct Hash {
    uint64_t a, b;
    bool operator==(const Hash&) const = default;
  };
  struct HashOfHash {
    size_t operator()(const Hash& h) const { return static_cast<size_t>(h.a); }
  };
  static Hash parse(const std::string& graph_hash);
  GraphSynthConfig config_;
  int64_t position_ = 0;
  std::unordered_set<Hash, HashOfHash> seen_;
};

}  // namespace tritonrl::graphs
