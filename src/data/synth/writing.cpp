// SPDX-License-Identifier: Apache-2.0
#include "data/synth/writing.h"

#include <algorithm>
#include <cctype>
#include <functional>

#include "base/text.h"
#include "data/synth/operators.h"

namespace tritonrl::graphs {

namespace {

using Words = std::vector<std::string>;

constexpr char kDone = '\x01';  // Around what was renamed already.

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == kDone; }

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

// What the draft's own name of a symbol says beyond doubt.
const std::map<std::string, Words>& known_roles() {
  static const std::map<std::string, Words> roles = {
      {"BATCH", {"batch_size", "batch"}},
      {"HEIGHT", {"height", "h", "img_height"}},
      {"WIDTH", {"width", "w", "img_width"}},
      {"CHANNELS", {"channels", "num_channels", "in_channels"}},
      {"HEADS", {"num_heads", "n_heads", "heads"}},
      {"HEAD_DIM", {"head_dim", "dim_head", "d_head"}},
      {"CLASSES", {"num_classes", "n_classes"}},
      {"VOCAB", {"vocab_size", "num_embeddings"}},
      {"HIDDEN", {"hidden_size", "hidden_dim", "hidden"}},
      {"SEQ", {"seq_len", "sequence_length", "seq_length"}},
      {"T", {"seq_len", "sequence_length", "time_steps"}},
      {"L", {"seq_len", "length", "num_tokens"}},
  };
  return roles;
}

// By place in a tensor of forward's arguments.
Words role_at(size_t rank, size_t place) {
  static const std::vector<std::vector<Words>> roles = {
      {{"length", "num_elements", "input_size", "size"}},
      {{"batch_size", "num_rows", "num_samples", "batch"},
       {"dim", "features", "num_features", "input_size", "feature_dim", "in_features"}},
      {{"batch_size", "batch", "num_batches"},
       {"seq_len", "channels", "sequence_length", "dim1", "num_tokens"},
       {"hidden_size", "dim", "embed_dim", "features", "dim2", "d_model", "length"}},
      {{"batch_size", "batch"},
       {"channels", "in_channels", "num_channels", "features"},
       {"height", "height", "dim1", "height_in", "H"},
       {"width", "width", "dim2", "width_in", "W"}},
      {{"batch_size", "batch"},
       {"channels", "in_channels"},
       {"depth", "depth", "depth_in", "D"},
       {"height", "height", "height_in", "H"},
       {"width", "width", "width_in", "W"}},
  };
  if (rank == 0 || rank > roles.size()) return {"dim"};
  return roles[rank - 1][place];
}

Words role_in_module(const std::string& module, size_t place) {
  bool first = place == 0;
  if (module.rfind("nn.Conv", 0) == 0)
    return first ? Words{"in_channels", "channels_in"} : Words{"out_channels", "channels_out", "num_filters"};
  if (module.rfind("nn.Linear", 0) == 0) {
    return first ? Words{"in_features", "input_size", "input_dim", "d_in"}
                 : Words{"out_features", "hidden_size", "output_size", "output_dim", "d_out", "hidden_dim"};
  }
  if (module.rfind("nn.Embedding", 0) == 0)
    return first ? Words{"vocab_size", "num_embeddings"} : Words{"embed_dim", "embedding_dim", "d_model"};
  return {};
}

}  // namespace

std::string replace_word(const std::string& text, const std::string& word, const std::string& by) {
  std::string out;
  size_t from = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + word.size())) {
    bool starts = at == 0 || (!in_word(text[at - 1]) && text[at - 1] != '.');
    bool ends = at + word.size() == text.size() || !in_word(text[at + word.size()]);
    if (!starts || !ends) continue;
    out += text.substr(from, at - from) + by;
    from = at + word.size();
  }
  return out + text.substr(from);
}

namespace {

// Three tasks in five are written so. Hints, docstrings of forward(), named inputs and default values go together:
// those who write one write all.
void write_conventionally(Writing& w, Rng rng) {
  auto flag = [&](double p) { return rng.uniform() < p; };
  if (!flag(0.6)) return;
  const bool thorough = flag(0.4);
  w.conventional = w.named_super = w.empty_init = w.class_doc = w.constants_last = true;
  w.tensor_imported = w.nn_first = w.nn_from = w.nested = w.one_line = w.input_docs = w.wide = false;
  w.hints = w.forward_doc = w.init_doc = thorough;
  w.new_hints = w.new_hints && thorough;
  w.init_doc = thorough && flag(0.3);
  w.bound_inputs = flag(thorough ? 0.7 : 0.06);
  w.defaults = flag(thorough ? 0.7 : 0.12);
  w.one_name = flag(thorough ? 0.6 : 0.97);
  w.own_last = w.numbers_last = flag(0.9);
  w.spatial_line = w.from_front = flag(0.9);
  w.scalars_named = flag(0.95);
  w.arguments = flag(0.92) ? 0.95 : 0.0;
  w.listed = thorough ? 0.4 : 0.03;
  w.container = Writing::Container::kNone;
  w.modules = rng.pick(std::vector<double>{0.1, 0.3, 0.6});
  w.sizes = flag(0.94) ? Writing::Sizes::kLower : Writing::Sizes::kTuple;
  w.layout = Writing::Layout::kGoogle;
  if (flag(0.6)) w.comments = Writing::Comments::kNone;
}

}  // namespace

Writing draw_writing(Rng rng) {
  Writing w;
  auto flag = [&](double p) { return rng.uniform() < p; };
  w.named_super = flag(0.85);
  w.new_named_super = flag(0.3);
  w.empty_init = flag(0.75);
  w.new_empty_init = flag(0.4);
  bool documented = flag(0.85);
  w.class_doc = documented && flag(0.92);
  w.init_doc = documented && flag(0.25);
  w.forward_doc = documented && flag(0.8);
  w.new_doc = flag(0.08);
  w.input_docs = flag(0.03);
  w.hints = flag(0.45);
  w.new_hints = flag(w.hints ? 0.35 : 0.02);
  w.tensor_imported = w.hints && flag(0.12);
  w.spare_functional = flag(0.15);
  w.long_functional = flag(0.4);
  w.nn_first = flag(0.06);
  w.nn_from = flag(0.08);
  w.constants_last = flag(0.85);
  w.constants_comment = flag(0.1);
  w.scalars_named = flag(0.75);
  w.defaults = flag(0.8);
  w.bound_inputs = flag(0.4);
  w.wide = flag(0.4);
  w.one_name = flag(0.65);
  w.nested = flag(0.2);
  w.one_line = flag(0.1);
  w.arguments = flag(0.75) ? 0.85 : 0.0;
  w.listed = rng.pick(std::vector<double>{0.05, 0.4, 0.9});
  w.modules = rng.pick(std::vector<double>{0, 0, 0.3, 0.9});
  w.forms = rng.pick(std::vector<double>{0.2, 0.5, 0.8});
  using enum Writing::Layout;
  w.layout = rng.pick(std::vector{kGoogle, kGoogle, kGoogle, kGoogle, kGoogle, kSphinx, kNumpy, kLine});
  w.comments = flag(0.65)  ? Writing::Comments::kNone
               : flag(0.7) ? Writing::Comments::kAbove
                           : Writing::Comments::kBehind;
  w.container = flag(0.6)   ? Writing::Container::kNone
                : flag(0.7) ? Writing::Container::kSequential
                            : Writing::Container::kBlock;
  if (w.container != Writing::Container::kNone) w.modules = 0.9;
  double sizes = rng.uniform();
  w.sizes = sizes < 0.70   ? Writing::Sizes::kLower
            : sizes < 0.75 ? Writing::Sizes::kUpper
            : sizes < 0.88 ? Writing::Sizes::kShort
            : sizes < 0.90 ? Writing::Sizes::kLiteral
                           : Writing::Sizes::kTuple;
  w.spatial_line = flag(0.5);
  w.own_last = flag(0.8);
  w.numbers_last = flag(0.75);
  double docs = rng.uniform();
  w.docs = docs < 0.5 ? Writing::Docs::kTrue : docs < 0.78 ? Writing::Docs::kVague : Writing::Docs::kStale;
  w.from_front = flag(0.72);
  w.listed_dims = flag(0.5);
  write_conventionally(w, rng.at("conventional"));
  return w;
}

namespace {

// What a parameter of the module's own is called by what is done with it.
const Words& words_for_operand(const TensorGraph& graph, int id) {
  static const Words kAdded = {"bias", "bias", "bias", "bias",      "bias",
                               "bias", "bias", "bias", "add_value", "sum_tensor"};
  static const Words kFactor = {"scale", "multiplier", "weight", "scaling_factor", "scale_factor", "multiplier"};
  static const Words kOther = {"bias", "bias", "bias", "subtract", "constant", "offset"};
  const std::vector<int> users = graph.users(id);
  const std::string op = users.empty() ? "" : graph[users[0]].op->name;
  return op == "add" ? kAdded : op == "mul" ? kFactor : kOther;
}

// Sizes of a product of inputs: M, K and N, small behind a batch.
void offer_product_sizes(const TensorGraph& graph, const std::function<void(const Dim&, const Words&)>& offer) {
  const Node* node = product_of_inputs(graph);
  if (node == nullptr || node->shape.size() < 2) return;
  const Shape& left = graph[node->operands[0]].shape;
  const bool small = left.size() > 2;
  const Dim &rows = node->shape[node->shape.size() - 2], &columns = node->shape.back();
  offer(rows, {small ? "m" : "M"});
  offer(columns, {small ? "n" : "N"});
  for (size_t i = left.size() - std::min<size_t>(left.size(), 2); i < left.size(); ++i) {
    if (left[i].text != rows.text) offer(left[i], {small ? "k" : "K"});
  }
}

}  // namespace

std::string invented_name(Rng& rng) {
  static const Words kSyllables = {"ba",  "ce",  "di",  "fo",  "gu",  "ka",  "le",  "mi",  "no",
                                   "pu",  "ra",  "se",  "ti",  "vo",  "zu",  "tar", "len", "mir",
                                   "son", "bel", "dor", "fin", "gas", "hel", "jun", "kor"};
  std::string name;
  for (int64_t i = 0, count = 2 + rng.below(2); i < count; ++i) name += rng.pick(kSyllables);
  if (rng.uniform() < 0.25) name += cat("_", rng.pick(kSyllables));
  if (rng.uniform() < 0.2) name += cat(rng.below(10));
  return name;
}

TensorGraph with_named_members(const TensorGraph& graph, const Writing& writing, Rng rng) {
  static const std::map<std::string, Words> kRoles = {
      {"linear",
       {"linear", "fc", "proj", "gemm", "matmul", "dense", "projection", "fc1", "linear1", "lin", "out_proj"}},
      {"conv", {"conv", "conv1", "conv_layer", "convolution", "conv2d", "conv3d", "conv1d", "feature", "stem"}},
      {"conv_transpose",
       {"conv_transpose", "deconv", "up", "conv_transpose2d", "conv_transpose3d", "conv_t", "upconv"}},
      {"batch_norm", {"batch_norm", "bn", "bn1", "norm"}},
      {"group_norm", {"group_norm", "gn", "norm", "groupnorm"}},
      {"instance_norm", {"instance_norm", "norm", "inorm", "instancenorm"}},
      {"layer_norm", {"layer_norm", "ln", "norm", "layernorm"}},
      {"", {"bias",       "weight",         "scale",        "multiplier",     "offset",     "gain",          "shift",
            "add_value",  "sum_weight",     "constant",     "subtract_value", "factor",     "bias_term",     "scaling",
            "sum_tensor", "scaling_factor", "scale_factor", "subtract",       "multiplier", "constant_value"}},
  };
  std::set<std::string> taken;
  std::map<std::string, std::string> renamed;
  auto role_of = [](const Node& node) -> std::string {
    if (node.kind == Node::Kind::kParameter) return "";
    return node.op->name.rfind("conv_transpose", 0) == 0 ? "conv_transpose"
           : node.op->family == "conv"                   ? "conv"
                                                         : node.op->name;
  };
  TensorGraph out = graph;
  for (const Node& node : graph.nodes) {
    if (!node.member.empty()) taken.insert(node.member.substr(0, node.member.find('.')));
  }
  for (size_t i = 0; i < out.nodes.size(); ++i) {
    Node& node = out.nodes[i];
    bool own = node.kind == Node::Kind::kParameter && !node.draw.empty();
    if (node.member.empty() || !(own || node.kind == Node::Kind::kCompute) || rng.uniform() < 0.3) continue;
    auto words = kRoles.find(role_of(node));
    const bool means_nothing = words == kRoles.end() || rng.uniform() < (writing.conventional ? 0.03 : 0.2);
    std::string name = means_nothing ? invented_name(rng) : rng.pick(words->second);
    if (writing.conventional && own && !means_nothing) name = rng.pick(words_for_operand(out, static_cast<int>(i)));
    if (!taken.insert(name).second) continue;
    renamed[node.member] = name;
    node.member = name;
  }
  for (Node& node : out.nodes) {
    size_t dot = node.member.find('.');
    if (node.kind != Node::Kind::kParameter || dot == std::string::npos) continue;
    if (auto it = renamed.find(node.member.substr(0, dot)); it != renamed.end())
      node.member = it->second + node.member.substr(dot);
  }
  return out;
}

std::vector<std::string> spatial_symbols(const TensorGraph& graph) {
  for (const Node& node : graph.nodes) {
    if (node.kind != Node::Kind::kInput || node.shape.size() < 4) continue;
    std::vector<std::string> out;
    for (size_t i = 2; i < node.shape.size(); ++i) {
      if (!graph.symbols.count(node.shape[i].text)) return {};
      out.push_back(node.shape[i].text);
    }
    return out;
  }
  return {};
}

const Node* product_of_inputs(const TensorGraph& graph) {
  auto is_input = [&](int id) { return graph[id].kind == Node::Kind::kInput; };
  for (const Node& node : graph.nodes) {
    if (node.kind == Node::Kind::kCompute && node.op->family == "matmul" && node.operands.size() == 2 &&
        is_input(node.operands[0]) && is_input(node.operands[1]))
      return &node;
  }
  return nullptr;
}

std::vector<std::string> symbols_in_order(const TensorGraph& graph) {
  std::vector<std::string> out;
  auto add = [&](const Shape& shape) {
    for (const Dim& dim : shape) {
      if (graph.symbols.count(dim.text) && std::find(out.begin(), out.end(), dim.text) == out.end())
        out.push_back(dim.text);
    }
  };
  for (const Node& node : graph.nodes) {
    if (node.kind == Node::Kind::kInput) add(node.shape);
  }
  for (const Node& node : graph.nodes) add(node.module_dims);
  for (const auto& [name, dim] : graph.symbols) add({dim});
  return out;
}

TensorGraph with_named_sizes(const TensorGraph& graph, const Writing& writing, Rng rng) {
  if (writing.sizes == Writing::Sizes::kShort) return graph;
  std::map<std::string, Words> roles;
  auto offer = [&](const Dim& dim, const Words& words) {
    if (graph.symbols.count(dim.text) && !words.empty()) roles.emplace(dim.text, words);
  };
  for (const auto& [name, dim] : graph.symbols) {
    if (auto it = known_roles().find(name); it != known_roles().end() && name != "CHANNELS") offer(dim, it->second);
  }
  if (writing.conventional) offer_product_sizes(graph, offer);
  for (const Node& node : graph.nodes) {
    for (size_t i = 0; i < node.module_dims.size(); ++i) offer(node.module_dims[i], role_in_module(node.module, i));
  }
  for (const Node& node : graph.nodes) {
    if (node.kind != Node::Kind::kInput) continue;
    for (size_t i = 0; i < node.shape.size(); ++i) offer(node.shape[i], role_at(node.shape.size(), i));
  }
  std::map<std::string, std::string> renamed;
  std::set<std::string> taken;
  const bool tuple = writing.sizes == Writing::Sizes::kTuple;
  const bool unnamed = tuple || writing.sizes == Writing::Sizes::kLiteral;  // The source has no name for them.
  for (const std::string& symbol : symbols_in_order(graph)) {
    auto role = roles.find(symbol);
    Words words = role == roles.end() ? Words{"dim", "size", "units"} : role->second;
    if (unnamed && (!tuple || !taken.empty())) words = {cat("size", taken.size())};
    double draw = unnamed ? 0 : rng.uniform();
    std::string name = draw < (writing.conventional ? 0.85 : 0.57)    ? words[0]
                       : draw < (writing.conventional ? 0.995 : 0.95) ? rng.pick(words)
                                                                      : invented_name(rng);
    for (int i = 2; taken.count(name); ++i) name = i < 5 ? rng.pick(words) : cat(words[0], "_", i - 3);
    taken.insert(name);
    renamed[symbol] = writing.sizes == Writing::Sizes::kUpper ? upper(name) : name;
  }
  auto rename = [&](std::string text) {
    for (const auto& [from, to] : renamed) text = replace_word(text, from, kDone + to + kDone);
    return replace_all(text, std::string(1, kDone), "");
  };
  TensorGraph out = graph;
  for (Node& node : out.nodes) {
    for (Shape* shape : {&node.shape, &node.module_dims}) {
      for (Dim& dim : *shape) dim.text = rename(dim.text);
    }
    if (node.kind == Node::Kind::kInput) node.draw = rename(node.draw);
  }
  out.symbols.clear();
  for (const auto& [name, dim] : graph.symbols) {
    Dim own = dim;
    own.text = renamed.at(name);
    out.symbols[own.text] = own;
  }
  return out;
}

}  // namespace tritonrl::graphs
