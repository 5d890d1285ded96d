// SPDX-License-Identifier: Apache-2.0
// GraphStream: an endless, deterministic stream of tasks from random operator graphs, no graph twice (or no more often
// than `repeats` says, each time with other sizes, names and text).
//
// Task number i is a function of the configuration, i, and the hashes and levels of the tasks before it: a stream that
// is told those continues exactly where another one stopped. Nothing but a graph's hash and count is kept. Tasks are
// made by all cores; how many there are changes nothing.
//
// Two styles. varied: all operators and shapes, sources and solutions in many hands, as a large policy should meet
// them; `writing` says whether sources are written as people write or hold what is needed and no more. plain:
// chains over one (M, N) tensor, one kernel a solution, and always the same way to write the same thing, so that a
// small policy learns from a hundred examples what several operators in a row become.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/config.h"
#include "base/rng.h"
#include "data/synth/draw.h"
#include "data/synth/writing.h"
#include "data/tasks/exclusion.h"
#include "data/tasks/split.h"
#include "data/tasks/task.h"

namespace tritonrl::graphs {

enum class SynthStyle { kVaried, kPlain };
constexpr auto enum_names(SynthStyle) { return std::array{"varied", "plain"}; }
enum class SolutionStyle { kVaried, kSettled };
constexpr auto enum_names(SolutionStyle) { return std::array{"varied", "settled"}; }
enum class ProductStyle { kIeee, kTf32 };
constexpr auto enum_names(ProductStyle) { return std::array{"ieee", "tf32"}; }
enum class SizeRange { kSmall, kGpu };
constexpr auto enum_names(SizeRange) { return std::array{"small", "gpu"}; }

struct SynthConfig {
  int64_t seed = 7;
  SynthStyle style = SynthStyle::kVaried;
  WritingStyle writing = WritingStyle::kAsPeople;  // Of varied tasks.
  std::vector<std::string> operators = {"all"};
  SizeRange sizes = SizeRange::kSmall;                       // small: a launch is 32 programs or fewer.
  std::vector<std::string> dtypes = {"float32", "float16"};  // bfloat16 can be verified on a GPU only.
  double level1_share = 0.25;                                // Tasks of one compute node.
  int64_t max_nodes = 6;  // Of the largest graph; each further node is drawn with continue_share.
  double continue_share = 0.6;
  double fusion_share = 0.3;  // Of the varied tasks above level 1: those that begin with a named fusion.
  double layer_share =
      0;  // Of the same: those that begin with a convolution or a linear layer, and go on as networks do.
  bool by_weight = false;  // Level 1: operators as often as their weights say, on inputs that they take.
  int64_t repeats = 1;     // How often a graph may come.
  SolutionStyle solutions = SolutionStyle::kVaried;  // Of varied tasks.
  ProductStyle products = ProductStyle::kIeee;       // Of float32, in solutions.
  bool only_covered = false;                         // Leave out tasks without a solution.
  std::vector<std::string> leave_out;                // Operators that no task has, in no place.
  template <class V>
  void for_each_field(V& v) {
    v("seed", seed, "names the whole stream");
    v("style", style,
      "varied = every shape, solutions in many styles; plain = chains over one (M, N), one kernel, one style");
    v("writing", writing,
      "of varied tasks: as_people = docstrings, hints, hyper-parameters, modules, every name; bare = none of it");
    v("operators", operators, "to draw from: all, core (29 element-wise ones), families, names (docs/synthesiser.md)");
    v.renamed("families", "data.synth.operators");
    v("sizes", sizes, "small = for Triton's interpreter; gpu = 1e6 to 1e8 elements");
    v("dtypes", dtypes, "float32, float16, bfloat16; the last can be verified on a GPU only");
    v("level1_share", level1_share, "share of tasks with one compute node (data synth --count)");
    v("max_nodes", max_nodes, "compute nodes of the largest graph");
    v.renamed("max_steps", "data.synth.max_nodes");
    v("continue_share", continue_share, "chance of a third, fourth ... node");
    v("fusion_share", fusion_share, "share of varied level-2 tasks that begin with a named fusion");
    v("layer_share", layer_share,
      "share of varied level-2 tasks that begin with a convolution or a linear layer and go on as networks do");
    v("by_weight", by_weight,
      "level 1: operators as often as they are met in networks, on inputs that they take; false = inputs come first, "
      "so that what few inputs suit is rare");
    v("solutions", solutions,
      "of varied tasks: varied = in many hands; settled = always the same fast way, only schedules differ");
    v("products", products,
      "of float32, in solutions: ieee = exact, right under every verify.tolerance; tf32 = as tl.dot makes them by "
      "itself, on tensor cores, wrong under verify.tolerance fp32");
    v("repeats", repeats, "how often the same graph may come, each time with other sizes, names and text");
    v("only_covered", only_covered, "leave out tasks that have no solution");
    v("leave_out", leave_out, "operators or families that are never drawn, alone or in a graph: held out entirely");
    v.renamed("exclude", "data.exclude");
  }
  void validate() const;
};

// Operators that tasks may have, by the names of outline_operators().
std::set<std::string> drawable_operators(const SynthConfig& config);

class GraphStream {
 public:
  // Graphs of two compute nodes and more whose outline is excluded are never drawn.
  explicit GraphStream(const SynthConfig& config, const Exclusion& exclusion = {});
  // The next tasks. Throws Error (usage) when no new graph can be found.
  std::vector<Task> next(int64_t count);
  Task next() { return std::move(next(1)[0]); }
  // The next tasks of level 1 (one compute node) or 2 (more); fewer when no new graph can be found. What it makes does
  // not depend on how many of the other level were made.
  std::vector<Task> next_of_level(int level, int64_t count);
  // Goes past a task made before, given its graph hash and level.
  void skip(const std::string& graph_hash, int64_t level);
  int64_t position() const { return position_; }
  int64_t excluded_draws() const { return excluded_draws_; }  // Graphs that were drawn and dropped for their outline.

 private:
  struct Hash {
    uint64_t a, b;
    bool operator==(const Hash&) const = default;
  };
  struct HashOfHash {
    size_t operator()(const Hash& h) const { return static_cast<size_t>(h.a); }
  };
  // Where one task comes from: the first attempt that finds a graph which may still come.
  struct Search {
    Rng rng;
    uint64_t singles = 0;  // So many attempts first are at one compute node.
    uint64_t attempt = 0;  // The next one.
    std::optional<Task> found = std::nullopt;
    int64_t excluded_draws = 0;
  };
  static Hash parse(const std::string& graph_hash);
  // A task without an id, of one compute node or of more; nothing: draw again. Any number of threads.
  std::optional<Task> draw(bool single, Rng draws, int64_t& excluded_draws) const;
  void run(Search& search) const;
  Search search_of(int64_t position) const;
  bool may_come(const Hash& hash) const;
  // Runs all of them, then takes what each found in turn; one that another got ahead of searches on.
  void run_all(std::vector<Search>& searches, const std::function<bool(Search&)>& take);
  void note_level(int64_t position, int64_t level);
  // What style and operators of the config say of a graph.
  bool wanted(const TensorGraph& graph) const;

  SynthConfig config_;
  OperatorSet operators_;
  std::map<std::string, std::string> excluded_;  // By outline.
  std::set<std::string> left_out_;               // By the names of outline_operators().
  int64_t excluded_draws_ = 0;
  Rng random_;
  int64_t position_ = 0;
  int64_t in_vain_ = 0;          // Places for a single operator in a row that got something larger.
  std::map<int, int64_t> made_;  // By level, of next_of_level.
  std::unordered_map<Hash, int64_t, HashOfHash> seen_;  // How often each came.
};

// Train, rl and heldout, filled from a stream of their own; disjoint by graph.
// `taught_elsewhere`: as make_splits().
Splits synthesise(const SynthConfig& config, const SplitConfig& split, const Exclusion& exclusion = {},
                  const std::vector<Task>& taught_elsewhere = {});

}  // namespace tritonrl::graphs
