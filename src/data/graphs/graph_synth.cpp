// SPDX-License-Identifier: Apache-2.0
#include "data/graphs/graph_synth.h"

#include <cmath>
#include <iomanip>
#include <sstream>

#include "base/rng.h"
#include "data/graphs/draw.h"
#include "data/graphs/torch_writer.h"
#include "data/graphs/triton_writer.h"

namespace tritonrl::graphs {

namespace {

constexpr uint64_t kGraphTries = 4000;

Type type_of(const std::string& name) {
  if (name == "float32") return Type::kFloat32;
  if (name == "float16") return Type::kFloat16;
  if (name == "bfloat16") return Type::kBfloat16;
  throw usage_error("dtype '" + name + "' is not known", "", "known: float32, float16, bfloat16");
}

}  // namespace

void GraphSynthConfig::validate() const {
  if (dtypes.empty()) throw usage_error("dtypes is empty");
  for (const std::string& name : dtypes) type_of(name);
  for (double share : {level1_share, continue_share, fusion_share}) {
    if (!(share >= 0 && share <= 1)) throw usage_error("shares must be 0 to 1");
  }
  if (max_nodes < 2 || max_nodes > 16) throw usage_error("max_nodes must be 2 to 16");
}

GraphStream::GraphStream(const GraphSynthConfig& config) : config_(config) { config_.validate(); }

GraphStream::Hash GraphStream::parse(const std::string& graph_hash) {
  CHECK(graph_hash.size() == 38 && graph_hash.rfind("graph:", 0) == 0) << graph_hash;
  return {std::stoull(graph_hash.substr(6, 16), nullptr, 16), std::stoull(graph_hash.substr(22, 16), nullptr, 16)};
}

void GraphStream::skip(const std::string& graph_hash) {
  seen_.insert(parse(graph_hash));
  ++position_;
}

Task GraphStream::next() {
  Rng rng = Rng(static_cast<uint64_t>(config_.seed)).at("graphs").at(static_cast<uint64_t>(position_));
  for (uint64_t attempt = 0; attempt < kGraphTries; ++attempt) {
    Rng draws = rng.at(attempt);
    DrawConfig draw;
    draw.type = type_of(config_.dtypes[static_cast<size_t>(draws.below(static_cast<int64_t>(config_.dtypes.size())))]);
    draw.gpu_sizes = config_.sizes == "gpu";
    // When single operators run out, what was to be level 1 becomes level 2.
    bool single = rng.at("level").uniform() < config_.level1_share && attempt < kGraphTries / 10;
    if (!single) {
      draw.fusion = draws.uniform() < config_.fusion_share;
      draw.nodes = 2;
      while (draw.nodes < config_.max_nodes && draws.uniform() < config_.continue_share) ++draw.nodes;
    }
    auto graph = draw_graph(draw, draws.at("graph"));
    if (!graph) continue;
    Naming naming = name_everything(*graph, draws.at("names"));
    Rng style_draws = draws.at("style");
    std::string hash = graph->hash();
    if (seen_.count(parse(hash))) continue;
    std::string solution = triton_solution(*graph, naming, draw_style(style_draws, draw.gpu_sizes));
    if (solution.empty() && config_.only_covered) continue;
    Task task;
    std::ostringstream id;
    id << "graphs/" << config_.seed << "/" << std::setw(6) << std::setfill('0') << position_;
    task.id = id.str();
    task.difficulty = graph->compute_nodes();
    task.level = task.difficulty == 1 ? 1 : 2;
    task.name = graph->name();
    task.source = torch_source(*graph, naming, draws.at("source"));
    task.solution = std::move(solution);
    task.graph_hash = hash;
    for (const auto& [name, dim] : graph->symbols) task.tiny[name] = dim.tiny;
    task.origin = cat("synth graphs seed ", config_.seed);
    task.licence = "Apache-2.0";
    seen_.insert(parse(hash));
    ++position_;
    return task;
  }
  throw usage_error(cat("found only ", position_, " different graphs"), "data.graphs",
                    "ask for fewer, or raise max_nodes");
}

}  // namespace tritonrl::graphs
