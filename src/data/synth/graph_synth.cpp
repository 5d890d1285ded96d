// SPDX-License-Identifier: Apache-2.0
#include "data/synth/graph_synth.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "base/text.h"
#include "data/synth/launch_plan.h"
#include "data/synth/torch_writer.h"
#include "data/synth/triton_writer.h"

namespace tritonrl::graphs {

namespace {

constexpr uint64_t kGraphTries = 4000;
constexpr uint64_t kSingleTries = 40;  // When single operators run out, so many are drawn in vain each time.
const std::vector<std::string> kPlainFamilies = {"elementwise", "compare", "reduction", "softmax",
                                                 "norm",        "scan",    "matmul"};

Type type_of(const std::string& name) {
  if (name == "float32") return Type::kFloat32;
  if (name == "float16") return Type::kFloat16;
  if (name == "bfloat16") return Type::kBfloat16;
  throw usage_error("dtype '" + name + "' is not known", "", "known: float32, float16, bfloat16");
}

OperatorSet drawn_by(const SynthConfig& config) {
  OperatorSet chosen = select_operators(config.operators);
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
  for (double share : {level1_share, continue_share, fusion_share}) {
    if (!(share >= 0 && share <= 1)) throw usage_error("shares must be 0 to 1");
  }
  if (max_nodes < 2 || max_nodes > 16) throw usage_error("max_nodes must be 2 to 16");
  OperatorSet chosen = drawn_by(*this);
  if (std::none_of(chosen.begin(), chosen.end(), [](const Operator* op) { return op->weight > 0; })) {
    throw usage_error(cat("operators has none that style '", name_of(style), "' draws"), "",
                      style == SynthStyle::kPlain ? "its families: " + join(kPlainFamilies, ", ") : "");
  }
}

GraphStream::GraphStream(const SynthConfig& config) : config_(config), random_(static_cast<uint64_t>(config.seed)) {
  config_.validate();
  operators_ = drawn_by(config_);
}

GraphStream::Hash GraphStream::parse(const std::string& graph_hash) {
  CHECK(graph_hash.size() == 38 && graph_hash.rfind("graph:", 0) == 0) << graph_hash;
  return {std::stoull(graph_hash.substr(6, 16), nullptr, 16), std::stoull(graph_hash.substr(22, 16), nullptr, 16)};
}

void GraphStream::skip(const std::string& graph_hash) {
  seen_.insert(parse(graph_hash));
  ++position_;
}

bool GraphStream::wanted(const TensorGraph& graph) const {
  if (config_.style == SynthStyle::kPlain) {
    auto plan = plan_kernels(graph);
    return plan && plan->kernels.size() == 1;
  }
  if (config_.operators == std::vector<std::string>{"all"}) return true;
  return std::all_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {  // Named fusions bring their own.
    return node.op == nullptr || std::find(operators_.begin(), operators_.end(), node.op) != operators_.end();
  });
}

std::optional<Task> GraphStream::draw(bool single, Rng draws) {
  DrawConfig draw;
  draw.type = type_of(draws.pick(config_.dtypes));
  draw.gpu_sizes = config_.sizes == SizeRange::kGpu;
  draw.plain = config_.style == SynthStyle::kPlain;
  draw.operators = &operators_;
  if (!single) {
    draw.fusion = draws.uniform() < config_.fusion_share && !draw.plain;
    draw.nodes = 2;
    while (draw.nodes < config_.max_nodes && draws.uniform() < config_.continue_share) ++draw.nodes;
  }
  auto graph = draw_graph(draw, draws.at("graph"));
  if (!graph) return std::nullopt;
  Task task;
  task.graph_hash = graph->hash();
  if (seen_.count(parse(task.graph_hash)) || !wanted(*graph)) return std::nullopt;
  Naming naming = name_everything(*graph, draw.plain, draws.at("names"));
  task.solution = triton_solution(*graph, naming, draw_style(draw.plain, draw.gpu_sizes, draws.at("style")));
  if (task.solution.empty() && config_.only_covered) return std::nullopt;
  task.difficulty = graph->compute_nodes();
  task.level = task.difficulty == 1 ? 1 : 2;
  task.name = graph->name();
  task.source = torch_source(*graph, naming, draws.at("source"));
  for (const auto& [name, dim] : graph->symbols) task.tiny[name] = dim.tiny;
  task.origin = cat("synth graphs seed ", config_.seed);
  task.licence = "Apache-2.0";
  seen_.insert(parse(task.graph_hash));
  return task;
}

Task GraphStream::next() {
  Rng rng = random_.at("graphs").at(static_cast<uint64_t>(position_));
  bool level1 = rng.at("level").uniform() < config_.level1_share;
  for (uint64_t attempt = 0; attempt < kGraphTries; ++attempt) {
    // When single operators run out, what was to be level 1 becomes level 2.
    auto task = draw(level1 && attempt < kSingleTries, rng.at(attempt));
    if (!task) continue;
    task->id = numbered(cat("graphs/", config_.seed), position_++);
    return *std::move(task);
  }
  throw usage_error(cat("found only ", position_, " different graphs"), "data.synth",
                    "ask for fewer, or give more operators or a larger max_nodes");
}

std::optional<Task> GraphStream::next_of_level(int level) {
  int64_t number = made_[level];
  Rng rng = random_.at("levels").at(static_cast<uint64_t>(level)).at(static_cast<uint64_t>(number));
  for (uint64_t attempt = 0; attempt < kGraphTries; ++attempt) {
    auto task = draw(level == 1, rng.at(attempt));
    if (!task) continue;
    task->id = numbered(cat("graphs/", config_.seed, "/", level), number);
    ++made_[level];
    return task;
  }
  return std::nullopt;
}

Splits synthesise(const SynthConfig& config, const SplitConfig& split) {
  GraphStream stream(config);
  return make_splits([&](int level) { return stream.next_of_level(level); }, split);
}

}  // namespace tritonrl::graphs
