// SPDX-License-Identifier: Apache-2.0
#include "data/synth/draft.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"
#include "data/synth/launch_plan.h"

namespace tritonrl::graphs {

namespace {

struct RoleSizes {
  std::vector<std::string> names;
  std::vector<int64_t> small, tiny, gpu;
  std::vector<int64_t> tiny_on_gpu = {};  // Where other tiny sizes let more groups of channels fit.
};

// Small: one launch of at most 32 programs for Triton's interpreter. Odd and prime sizes on purpose: masks must matter.
const RoleSizes& sizes_of(Role role) {
  static const std::vector<RoleSizes> all = {
      {{"B", "N", "BATCH"}, {2, 3, 4}, {2, 3}, {16, 32, 48, 64}},
      {{"M", "ROWS", "B", "BATCH"}, {4, 5, 7, 8, 11, 13, 16, 20, 24}, {3, 5}, {1000, 2048, 4096, 8192, 16384}},
      {{"N", "COLS", "D", "FEATURES"},
       {33, 61, 64, 97, 100, 128, 131, 200, 256, 300, 513},
       {7, 9, 11},
       {512, 1000, 1024, 2048, 4096, 6000}},
      {{"N", "SIZE", "LENGTH"},
       {500, 1000, 1024, 1531, 2048, 3000, 4097},
       {7, 11, 13},
       {1 << 20, 1 << 22, 10000019, 1 << 24}},
      {{"T", "S", "L", "SEQ"}, {5, 6, 7, 8, 9, 12, 16}, {5, 6}, {128, 200, 256, 512, 1024}},
      {{"D", "E", "K", "DIM", "HIDDEN"},
       {16, 24, 31, 32, 40, 48, 53, 64, 80},
       {7, 9, 10, 11},
       {256, 384, 512, 768, 1024},
       {7, 9, 10, 11, 16, 24}},
      {{"C", "CHANNELS"}, {3, 4, 5, 6, 8, 12}, {4, 6}, {3, 8, 16, 16, 32, 32, 48, 64}, {8, 16}},
      {{"H", "HEIGHT"}, {7, 8, 9, 11, 12, 14}, {7, 9}, {28, 32, 56, 64, 128}},
      {{"W", "WIDTH"}, {7, 8, 10, 13, 15, 16}, {8, 10}, {28, 30, 56, 64, 128}},
      {{"H", "HEADS"}, {2, 3}, {2}, {8, 12, 16}},
      {{"D", "HEAD_DIM"}, {8, 16, 20, 32}, {5, 8}, {32, 64}},
      {{"C", "CLASSES", "V", "VOCAB"}, {10, 17, 37, 50, 100, 129}, {7, 10, 11}, {1000, 4000, 8192}},
      {{"D", "DEPTH"}, {4, 5}, {4, 5}, {8, 12, 16}},
      {{"H", "HEIGHT"}, {5, 6, 7}, {5, 6}, {16, 24, 28, 32}},
      {{"W", "WIDTH"}, {5, 6, 7, 8}, {5, 7}, {16, 20, 30, 32}},
      {{"C", "CHANNELS"}, {2, 3, 4, 6}, {2, 4}, {3, 8, 16, 32, 48}, {4, 8}},
      {{"M", "ROWS", "B", "BATCH"}, {2, 3, 4}, {3, 5}, {64, 128, 256, 512}},
      {{"N", "COLS", "D", "FEATURES"}, {1531, 2048}, {7, 9, 11}, {16384, 32768, 65535, 131072, 262144}},
  };
  return all[static_cast<size_t>(role)];
}

double draw_normal(Rng& rng) { return rng.normal(); }
double draw_positive(Rng& rng) { return 0.5 + rng.uniform(); }
double draw_unit(Rng& rng) { return 0.05 + 0.9 * rng.uniform(); }
double draw_half(Rng& rng) { return 0.5 * rng.normal(); }
double draw_sign(Rng& rng) { return rng.uniform() < 0.5 ? -1 : 1; }

}  // namespace

Dim Draft::symbol(Role role) {
  const RoleSizes& sizes = sizes_of(role);
  std::string name = one_of(sizes.names);
  for (int i = 2; graph.symbols.count(name) > 0; ++i)
    name = !plain && i <= 10 ? rng.pick(sizes.names) : cat(sizes.names[0], plain ? i : i - 9);
  auto differing = [&](const std::vector<int64_t>& from, bool tiny) {
    int64_t value = rng.pick(from);
    for (int tries = 0; tries < 8; ++tries) {
      bool taken = false;
      for (const auto& [key, dim] : graph.symbols) taken |= (tiny ? dim.tiny : dim.full) == value;
      if (!taken) break;
      value = rng.pick(from);
    }
    return value;
  };
  Dim dim{name, differing(gpu_ ? sizes.gpu : sizes.small, false),
          differing(gpu_ && !sizes.tiny_on_gpu.empty() ? sizes.tiny_on_gpu : sizes.tiny, true)};
  graph.symbols[name] = dim;
  return dim;
}

int64_t Draft::longest_row(const Operator& op) const {
  return long_rows && takes_long_rows(op) ? kLongestLoop : kLongestRow;
}

int Draft::add_input(const Shape& shape, Type input_type, std::string draw, double (*sample)(Rng&), double low,
                     double high) {
  if (inputs_ == (plain ? kMaxPlainInputs : kMaxInputs)) return -1;
  Node node;
  node.kind = Node::Kind::kInput;
  node.shape = shape;
  node.type = input_type;
  node.draw = std::move(draw);
  Rng own = Rng(77).at(static_cast<uint64_t>(inputs_++));
  for (int i = 0; i < kSamples; ++i) node.values.samples.push_back(sample(own));
  node.values.low = low;
  node.values.high = high;
  node.values.exact = true;
  return graph.add(std::move(node));
}

int Draft::input(const Shape& shape, bool positive) {
  std::string type_argument = type == Type::kFloat32 ? "" : cat(", dtype=", torch_name(type));
  if (positive)
    return add_input(shape, type, cat("torch.rand({shape}", type_argument, ") + 0.5"), draw_positive, 0.5, 1.5);
  if (!plain && chance(0.12))
    return add_input(shape, type, cat("torch.randn({shape}", type_argument, ") * 0.5"), draw_half, -2.5, 2.5);
  return add_input(shape, type, cat("torch.randn({shape}", type_argument, ")"), draw_normal, -5, 5);
}

int Draft::unit_input(const Shape& shape) {
  std::string type_argument = type == Type::kFloat32 ? "" : cat(", dtype=", torch_name(type));
  return add_input(shape, type, cat("torch.rand({shape}", type_argument, ") * 0.9 + 0.05"), draw_unit, 0.05, 0.95);
}

int Draft::sign_input(const Shape& shape) {
  std::string cast = type == Type::kFloat32 ? ".float()" : cat(".to(", torch_name(type), ")");
  return add_input(shape, type, cat("(torch.randint(0, 2, ({shape},)) * 2 - 1)", cast), draw_sign, -1, 1);
}

int Draft::index_input(const Shape& shape, const Dim& below) {
  return add_input(shape, Type::kInt64, cat("torch.randint(0, ", below.text, ", ({shape},))"), draw_unit, 0, 1);
}

int Draft::parameter(const Shape& shape, const std::string& draw, const std::string& name) {
  Node node;
  node.kind = Node::Kind::kParameter;
  node.shape = shape;
  node.type = type;
  node.draw = draw;
  node.member = name;
  Rng own = Rng(78).at(graph.nodes.size());
  for (int i = 0; i < kSamples; ++i) node.values.samples.push_back(own.normal());
  node.values.low = -5;
  node.values.high = 5;
  return graph.add(std::move(node));
}

// A new input of the same shape, one number a column or one a row; or the first input again.
int Draft::plain_other(const Shape& wanted, int not_this, bool positive, bool may_broadcast) {
  double draw = rng.uniform();
  if (graph[not_this].type != type || wanted.size() != 2 || wanted[0].is_one() || wanted[1].is_one()) return -1;
  if (!positive && draw < 0.25 && not_this != 0 && graph[0].shape == wanted) return 0;
  Shape shape = wanted;
  if (may_broadcast && draw > 0.8) shape.erase(shape.begin());
  if (may_broadcast && draw > 0.6 && draw <= 0.8) shape[1] = Dim();
  return input(shape, positive);
}

// One number a channel, or now and then one for all. -1 where that is no parameter's size.
int Draft::channel_parameter(const Shape& wanted) {
  Shape shape = {Dim()};
  if (wanted.size() >= 2 && !chance(wanted.size() == 2 ? 0.2 : 0.1)) {
    shape.assign(wanted.size() - 1, Dim());
    shape[0] = wanted[1];
    if (wanted.size() > 2 && chance(0.15)) shape.insert(shape.begin(), Dim());
  }
  if (elements(shape) > 4096) return -1;
  return parameter(shape, "torch.randn({shape})",
                   member(one_of({"bias", "bias", "bias", "bias", "bias", "bias", "scale", "offset", "gain", "shift",
                                  "multiplier"})));
}

int Draft::other(const Shape& wanted, int not_this, bool positive, bool may_broadcast) {
  if (plain) return plain_other(wanted, not_this, positive, may_broadcast);
  double draw = rng.uniform();
  if (!positive && draw < (layered ? 0.18 : 0.35)) {  // An earlier value.
    std::vector<int> fitting;
    Shape out;
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const Node& node = graph.nodes[i];
      int id = static_cast<int>(i);
      if (id == not_this || node.kind == Node::Kind::kParameter || node.type == Type::kInt64) continue;
      if (node.type != graph[not_this].type) continue;
      if (broadcast(wanted, node.shape, out) && out == wanted) fitting.push_back(id);
    }
    if (!fitting.empty()) return rng.pick(fitting);
  }
  if (wanted.empty()) return -1;
  if (layered && !positive && may_broadcast && draw < 0.8 && graph[not_this].type == type)
    return channel_parameter(wanted);
  Shape shape = wanted;
  if (may_broadcast && shape.size() >= 2 && chance(0.4)) {
    if (chance(0.5)) {
      shape.erase(shape.begin(), shape.begin() + 1 + rng.below(static_cast<int64_t>(shape.size()) - 1));  // Trailing.
    } else {
      shape[static_cast<size_t>(rng.below(static_cast<int64_t>(shape.size())))] = Dim();  // Size 1 somewhere.
    }
  }
  if (graph[not_this].type != type) return -1;
  if (!positive && draw > 0.88 && elements(shape) <= 4096) {
    return parameter(shape, "torch.randn({shape})", member(one_of({"scale", "bias", "offset", "gain", "shift"})));
  }
  return input(shape, positive);
}

int Draft::compute(Node node, const std::vector<double>& samples, double low, double high, bool exact) {
  double sum = 0, squares = 0, top = 0;
  for (double v : samples) {
    if (!std::isfinite(v)) return -1;
    sum += v;
    squares += v * v;
    top = std::max(top, std::abs(v));
  }
  double count = static_cast<double>(samples.size()), average = sum / count, rms = std::sqrt(squares / count);
  double deviation = std::sqrt(std::max(0.0, squares / count - average * average));
  bool half = is_half(node.type);
  // A change must be larger than what the comparison forgives, or a wrong answer would pass.
  if (node.type != Type::kInt64) {
    double spread = (half ? 0.08 : long_rows ? 0.005 : 0.02) * (node.shape.empty() ? 0.3 : 1.0);
    if (rms < (half ? 1e-3 : 1e-6) || deviation < spread * rms) return -1;
    if (top > (half ? 2e3 : 1e6)) return -1;
  }
  std::set<double> different;
  for (double v : samples) different.insert(v);
  if (node.type != Type::kInt64 && different.size() < 2) return -1;
  node.values = {samples, low, high, exact};
  return graph.add(std::move(node));
}

std::string Draft::member(const std::string& base) {
  int count = ++members_[base];
  return count == 1 ? base : cat(base, count);
}

bool Draft::too_much(const Shape& shape, int64_t terms) const {
  int64_t count = elements(shape);
  return gpu_ ? count > (int64_t{1} << 27) : count > 32768 || count * terms > 1000000;
}

void Draft::write(Node& node, const std::string& constructor, const std::string& base) {
  std::vector<std::string> forms = node.op->forms;
  forms.push_back(node.op->torch);
  node.call = one_of(forms);
  if (node.call.find("{self}") == std::string::npos || constructor.empty()) return;
  node.member = member(base);
  node.module = constructor;
}

void Draft::forget_since(const Draft& before) {
  inputs_ = before.inputs_;
  members_ = before.members_;
}

std::vector<double> Draft::summed(int x, int64_t count, double deviation) {
  const auto& from = values(x).samples;
  double squares = 0;
  for (double v : from) squares += v * v;
  double scale = deviation * std::sqrt(squares / kSamples * static_cast<double>(count));
  std::vector<double> out;
  Rng own = Rng(79).at(graph.nodes.size());
  for (int i = 0; i < kSamples; ++i) out.push_back(scale * own.normal());
  return out;
}

std::vector<double> Draft::shuffled(int x) {
  std::vector<double> out = values(x).samples;
  Rng own = Rng(80).at(graph.nodes.size());
  own.shuffle(out);
  return out;
}

}  // namespace tritonrl::graphs
