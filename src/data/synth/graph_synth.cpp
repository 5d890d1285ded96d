// SPDX-License-Identifier: Apache-2.0
#include "data/synth/graph_synth.h"

#include <algorithm>
#include <iomanip>
#include <sstream>
#include <thread>
#include <utility>

#include "base/parallel.h"
#include "base/text.h"
#include "data/synth/launch_plan.h"
#include "data/synth/torch_writer.h"
#include "data/synth/triton_writer.h"

namespace tritonrl::graphs {

namespace {

constexpr uint64_t kGraphTries = 4000;
constexpr uint64_t kSingleTries = 40;   // At one operator, for a place of level 1; then larger graphs.
constexpr int64_t kSinglesRunOut = 32;  // So many such places in a row got a larger graph: no more are looked for.
constexpr int64_t kBlock = 1024;        // Tasks made together.
const std::vector<std::string> kPlainFamilies = {"elementwise", "compare", "reduction", "softmax",
                                                 "norm",        "scan",    "matmul"};

Type type_of(const std::string& name) {
  if (name == "float32") return Type::kFloat32;
  if (name == "float16") return Type::kFloat16;
  if (name == "bfloat16") return Type::kBfloat16;
  throw usage_error("dtype '" + name + "' is not known", "", "known: float32, float16, bfloat16");
}

bool holds(const OperatorSet& set, const Operator* op) { return std::find(set.begin(), set.end(), op) != set.end(); }

bool share(const std::set<std::string>& a, const std::set<std::string>& b) {
  return std::any_of(a.begin(), a.end(), [&](const std::string& name) { return b.contains(name); });
}

// What the outlines of graphs must not hold. An operator that is several in an outline ("gate") is kept out by itself
// alone.
std::set<std::string> names_left_out(const OperatorSet& left_out) {
  std::set<std::string> names;
  for (const Operator* op : left_out) {
    if (auto own = outline_operators(*op); own.size() == 1) names.merge(own);
  }
  return names;
}

OperatorSet left_out_by(const SynthConfig& config) {
  return config.leave_out.empty() ? OperatorSet() : select_operators(config.leave_out, "leave_out");
}

OperatorSet drawn_by(const SynthConfig& config) {
  OperatorSet chosen = select_operators(config.operators), left_out = left_out_by(config);
  std::erase_if(chosen, [&](const Operator* op) { return holds(left_out, op); });
  std::erase_if(chosen, [&](const Operator* op) {
    bool for_plain =
        !op->varied_only && std::find(kPlainFamilies.begin(), kPlainFamilies.end(), op->family) != kPlainFamilies.end();
    return config.style == SynthStyle::kPlain && !for_plain;
  });
  return chosen;
}

std::string numbered(const std::string& prefix, int64_t number) {
  std::ostringstream id;
  id << prefix << "/" << std::setw(6) << std::setfill('0') << number;
  return id.str();
}

}  // namespace

void SynthConfig::validate() const {
  if (dtypes.empty()) throw usage_error("dtypes is empty");
  for (const std::string& name : dtypes) type_of(name);
  for (double share : {level1_share, continue_share, fusion_share, layer_share}) {
    if (!(share >= 0 && share <= 1)) throw usage_error("shares must be 0 to 1");
  }
  if (max_nodes < 2 || max_nodes > 16) throw usage_error("max_nodes must be 2 to 16");
  if (repeats < 1) throw usage_error("repeats must be at least 1");
  OperatorSet chosen = drawn_by(*this), left_out = left_out_by(*this);
  std::vector<std::string> twins;
  for (const Operator* op : chosen) {
    auto names = outline_operators(*op);
    if (names.size() == 1 && share(names, names_left_out(left_out))) twins.push_back(op->name);
  }
  if (!twins.empty()) {
    throw usage_error(cat("leave_out leaves operators in that compute the same: ", join(twins, ", ")), "",
                      "leave these out too");
  }
  if (std::none_of(chosen.begin(), chosen.end(), [](const Operator* op) { return op->weight > 0; })) {
    throw usage_error(cat("operators has none that style '", name_of(style), "' draws"), "",
                      style == SynthStyle::kPlain ? "its families: " + join(kPlainFamilies, ", ") : "");
  }
}

std::set<std::string> drawable_operators(const SynthConfig& config) {
  std::set<std::string> names, left_out = names_left_out(left_out_by(config));
  for (const Operator* op : drawn_by(config)) {
    auto own = outline_operators(*op);
    if (!share(own, left_out)) names.merge(own);
  }
  return names;
}

GraphStream::GraphStream(const SynthConfig& config, const Exclusion& exclusion)
    : config_(config), excluded_(exclusion.outlines), random_(static_cast<uint64_t>(config.seed)) {
  config_.validate();
  operators_ = drawn_by(config_);
  left_out_ = names_left_out(left_out_by(config_));
}

GraphStream::Hash GraphStream::parse(const std::string& graph_hash) {
  CHECK(graph_hash.size() == 38 && graph_hash.rfind("graph:", 0) == 0) << graph_hash;
  return {std::stoull(graph_hash.substr(6, 16), nullptr, 16), std::stoull(graph_hash.substr(22, 16), nullptr, 16)};
}

bool GraphStream::may_come(const Hash& hash) const {
  auto it = seen_.find(hash);
  return it == seen_.end() || it->second < config_.repeats;
}

void GraphStream::skip(const std::string& graph_hash, int64_t level) {
  ++seen_[parse(graph_hash)];
  note_level(position_++, level);
}

bool GraphStream::wanted(const TensorGraph& graph) const {
  if (!left_out_.empty() && share(outline_operators(graph), left_out_)) return false;
  if (config_.style == SynthStyle::kPlain) {
    auto plan = plan_kernels(graph);
    return plan && plan->kernels.size() == 1;
  }
  if (config_.operators == std::vector<std::string>{"all"} && config_.leave_out.empty()) return true;
  return std::all_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {  // Named fusions bring their own.
    return node.op == nullptr || holds(operators_, node.op);
  });
}

std::optional<Task> GraphStream::draw(bool single, Rng draws, int64_t& excluded_draws) const {
  DrawConfig draw;
  draw.type = type_of(draws.pick(config_.dtypes));
  draw.gpu_sizes = config_.sizes == SizeRange::kGpu;
  draw.plain = config_.style == SynthStyle::kPlain;
  draw.operators = &operators_;
  draw.by_weight = config_.by_weight && !draw.plain;
  draw.long_rows = config_.solutions == SolutionStyle::kSettled && !draw.plain;
  if (!single) {
    draw.fusion = draws.uniform() < config_.fusion_share && !draw.plain;
    draw.layer = config_.layer_share > 0 && !draw.plain && draws.uniform() < config_.layer_share;
    draw.nodes = draw.layer ? std::min<int64_t>(3, config_.max_nodes) : 2;
    while (draw.nodes < config_.max_nodes && draws.uniform() < config_.continue_share) ++draw.nodes;
  }
  auto graph = draw_graph(draw, draws.at("graph"));
  if (!graph) return std::nullopt;
  Task task;
  bool literal_sizes = false;
  task.graph_hash = graph->hash();
  if (!may_come(parse(task.graph_hash)) || !wanted(*graph)) return std::nullopt;
  if (!excluded_.empty() && graph->compute_nodes() > 1 && excluded_.contains(outline(*graph))) {
    ++excluded_draws;
    return std::nullopt;
  }
  Style style = config_.solutions == SolutionStyle::kSettled && !draw.plain
                    ? settled_style(draw.gpu_sizes)
                    : draw_style(draw.plain, draw.gpu_sizes, draws.at("style"));
  style.tf32 = config_.products == ProductStyle::kTf32;
  if (draw.plain || config_.writing == WritingStyle::kBare) {
    Naming naming = name_everything(*graph, draw.plain, draws.at("names"));
    task.solution = triton_solution(*graph, naming, style);
    task.source = torch_source(*graph, naming, draws.at("source"));
  } else {
    Writing writing = draw_writing(draws.at("writing"));
    graph = with_named_members(with_named_sizes(*graph, writing, draws.at("sizes")), writing, draws.at("members"));
    draw_schedule(style, draw.gpu_sizes, draws.at("schedule"));
    writing.pools_kept = style.read_modules;
    Naming naming = name_as_people(*graph, writing, draws.at("names"));
    task.solution = triton_solution(*graph, naming, style, &writing);
    task.source = people_source(*graph, naming, writing, draws.at("source"));
    literal_sizes = writing.sizes == Writing::Sizes::kLiteral || writing.sizes == Writing::Sizes::kTuple;
  }
  if (task.solution.empty() && config_.only_covered) return std::nullopt;
  task.difficulty = graph->compute_nodes();
  task.level = task.difficulty == 1 ? 1 : 2;
  task.name = graph->name();
  for (const auto& [name, dim] : graph->symbols) {
    if (!literal_sizes) task.tiny[name] = dim.tiny;
  }
  task.origin = cat("synth graphs seed ", config_.seed);
  task.licence = "Apache-2.0";
  return task;
}

void GraphStream::run(Search& search) const {
  search.found.reset();
  while (!search.found && search.attempt < kGraphTries) {
    search.found = draw(search.attempt < search.singles, search.rng.at(search.attempt), search.excluded_draws);
    ++search.attempt;
  }
}

void GraphStream::run_all(std::vector<Search>& searches, const std::function<bool(Search&)>& take) {
  const auto threads = static_cast<int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  parallel_for(searches.size(), threads, [&](size_t i) { run(searches[i]); });
  for (Search& search : searches) {
    while (search.found && !may_come(parse(search.found->graph_hash))) run(search);
    excluded_draws_ += std::exchange(search.excluded_draws, 0);
    if (search.found) ++seen_[parse(search.found->graph_hash)];
    if (!take(search)) return;
  }
}

GraphStream::Search GraphStream::search_of(int64_t position) const {
  Rng rng = random_.at("graphs").at(static_cast<uint64_t>(position));
  bool single = in_vain_ < kSinglesRunOut && rng.at("level").uniform() < config_.level1_share;
  return {rng, single ? kSingleTries : 0};
}

void GraphStream::note_level(int64_t position, int64_t level) {
  if (in_vain_ >= kSinglesRunOut || search_of(position).singles == 0) return;
  in_vain_ = level == 1 ? 0 : in_vain_ + 1;
}

std::vector<Task> GraphStream::next(int64_t count) {
  std::vector<Task> tasks;
  while (static_cast<int64_t>(tasks.size()) < count) {
    std::vector<Search> searches;
    for (int64_t left = std::min(kBlock, count - static_cast<int64_t>(tasks.size())), i = 0; i < left; ++i) {
      searches.push_back(search_of(position_ + i));
    }
    run_all(searches, [&](Search& search) {
      if (!search.found) {
        throw usage_error(cat("found only ", position_, " different graphs"), "data.synth",
                          "ask for fewer, or give more operators, a larger max_nodes or repeats");
      }
      bool singles_left = in_vain_ < kSinglesRunOut;
      search.found->id = numbered(cat("graphs/", config_.seed), position_);
      note_level(position_++, search.found->level);
      tasks.push_back(*std::move(search.found));
      return singles_left == (in_vain_ < kSinglesRunOut);  // From then on places are looked for otherwise.
    });
  }
  return tasks;
}

std::vector<Task> GraphStream::next_of_level(int level, int64_t count) {
  std::vector<Task> tasks;
  bool more = true;
  while (more && static_cast<int64_t>(tasks.size()) < count) {
    std::vector<Search> searches;
    for (int64_t left = std::min(kBlock, count - static_cast<int64_t>(tasks.size())), i = 0; i < left; ++i) {
      Rng rng = random_.at("levels").at(static_cast<uint64_t>(level)).at(static_cast<uint64_t>(made_[level] + i));
      searches.push_back({rng, level == 1 ? kGraphTries : 0});
    }
    run_all(searches, [&](Search& search) {
      more = search.found.has_value();
      if (!more) return false;
      search.found->id = numbered(cat("graphs/", config_.seed, "/", level), made_[level]++);
      tasks.push_back(*std::move(search.found));
      return true;
    });
  }
  return tasks;
}

Splits synthesise(const SynthConfig& config, const SplitConfig& split, const Exclusion& exclusion,
                  const std::vector<Task>& taught_elsewhere) {
  GraphStream stream(config, exclusion);
  Splits splits = make_splits([&](int level, int64_t count) { return stream.next_of_level(level, count); }, split,
                              taught_elsewhere);
  splits.excluded_draws = stream.excluded_draws();
  return splits;
}

}  // namespace tritonrl::graphs
