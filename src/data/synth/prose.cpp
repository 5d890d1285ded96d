// SPDX-License-Identifier: Apache-2.0
#include "data/synth/prose.h"

#include <cctype>
#include <map>

#include "base/text.h"
#include "data/synth/operators.h"

namespace tritonrl::graphs {

namespace {

using Words = std::vector<std::string>;

std::string spaced(const std::string& name) { return replace_all(name, "_", " "); }

std::string capital(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

// Words that say little of what is computed, or mean something else than the operator of that name.
const Words& vague_phrases() {
  static const Words phrases = {"the operation below",
                                "a simple computation",
                                "one step of a network",
                                "an operation on a square input",
                                "a standard operation with a square kernel",
                                "an operation with an asymmetric kernel and a square input",
                                "a single operation (C = A * B)",
                                "a matrix multiplication and what follows it",
                                "several operations in sequence",
                                "an operation over a specific dimension",
                                "a reduction-like step",
                                "a layer with a large input",
                                "the usual block of a network",
                                "a mean-field style update",
                                "a max-performance test case",
                                "an operation that takes the absolute majority of the time",
                                "a sum of parts",
                                "a scaled-up example",
                                "an exponentially useful operation",
                                "a normalized benchmark case",
                                "a multi-step computation on tensors of any shape"};
  return phrases;
}

// The operators in words, in order, joined as prose: "a linear layer, GELU and a softmax".
std::string listed(const TensorGraph& graph, Writing::Docs docs, Rng& rng) {
  if (docs == Writing::Docs::kVague) return rng.pick(vague_phrases());
  Words phrases;
  for (int64_t i = 0; docs == Writing::Docs::kStale && i < 1 + i / 2 + rng.below(2); ++i) {
    Node other;
    other.op = &rng.pick(operators());
    phrases.push_back(phrase_of(other, rng));
  }
  for (const Node& node : graph.nodes) {
    if (docs == Writing::Docs::kTrue && node.kind == Node::Kind::kCompute) phrases.push_back(phrase_of(node, rng));
  }
  if (phrases.size() == 1) return phrases[0];
  std::string last = phrases.back();
  phrases.pop_back();
  static const Words joints = {" and ", ", then ", ", followed by ", " and finally ", ", and "};
  return join(phrases, ", ") + rng.pick(joints) + last;
}

std::string with_stop(const std::string& sentence, Rng& rng) { return sentence + (rng.uniform() < 0.75 ? "." : ""); }

Words wrapped(const std::string& text, size_t width) {
  Words lines(1);
  for (const std::string& word : split(text, ' ')) {
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > width) lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
  }
  return lines;
}

}  // namespace

std::string phrase_of(const Node& node, Rng& rng) {
  static const std::map<std::string, Words> phrases = {
      {"relu", {"ReLU", "a ReLU", "a rectifier"}},
      {"silu", {"SiLU", "Swish", "a SiLU gate"}},
      {"gelu", {"GELU", "a GELU"}},
      {"gelu_tanh", {"GELU with the tanh formula", "tanh-style GELU"}},
      {"leaky_relu", {"Leaky ReLU", "a leaky rectifier"}},
      {"elu", {"ELU", "an ELU"}},
      {"sigmoid", {"a sigmoid", "the logistic function", "sigmoid"}},
      {"tanh", {"tanh", "a hyperbolic tangent"}},
      {"add", {"an addition", "a sum with another tensor"}},
      {"mul", {"a product with another tensor", "an element-wise product"}},
      {"sub", {"a subtraction", "a difference"}},
      {"div", {"a division", "an element-wise quotient"}},
      {"add_scalar", {"a constant offset", "an added constant"}},
      {"sub_scalar", {"a subtracted constant", "a constant shift"}},
      {"mul_scalar", {"scaling", "a constant factor", "a multiplication by a scalar"}},
      {"div_scalar", {"a division by a scalar", "scaling down"}},
      {"clamp", {"clamping", "a clamp to a range"}},
      {"hardtanh", {"a hard tanh", "HardTanh"}},
      {"matmul", {"a matrix product", "matrix multiplication", "a matmul"}},
      {"bmm", {"a batched matrix product", "batched matmul"}},
      {"linear", {"a linear layer", "a fully connected layer", "a dense projection", "a GEMM"}},
      {"conv1d", {"a 1D convolution", "a temporal convolution"}},
      {"conv2d", {"a 2D convolution", "a convolution"}},
      {"conv3d", {"a 3D convolution", "a volumetric convolution"}},
      {"conv_transpose1d", {"a transposed 1D convolution", "1D upsampling by a transposed convolution"}},
      {"conv_transpose2d", {"a transposed 2D convolution", "a learned upsampling", "a deconvolution"}},
      {"conv_transpose3d", {"a transposed 3D convolution", "volumetric upsampling", "a 3D deconvolution"}},
      {"max_pool1d", {"1D max pooling", "max pooling along the sequence"}},
      {"max_pool2d", {"2D max pooling", "max pooling"}},
      {"max_pool3d", {"3D max pooling", "max pooling over volumes"}},
      {"avg_pool1d", {"1D average pooling", "a moving average"}},
      {"avg_pool2d", {"2D average pooling", "average pooling"}},
      {"avg_pool3d", {"3D average pooling", "average pooling over volumes"}},
      {"adaptive_avg_pool1d", {"global average pooling", "adaptive 1D average pooling"}},
      {"adaptive_avg_pool2d", {"global average pooling", "adaptive 2D average pooling"}},
      {"adaptive_avg_pool3d", {"global average pooling", "adaptive 3D average pooling"}},
      {"adaptive_max_pool1d", {"global max pooling", "adaptive 1D max pooling"}},
      {"adaptive_max_pool2d", {"global max pooling", "adaptive 2D max pooling"}},
      {"adaptive_max_pool3d", {"global max pooling", "adaptive 3D max pooling"}},
      {"max_dim", {"the maximum along a dimension", "a max over one dimension"}},
      {"min_dim", {"the minimum along a dimension", "a min over one dimension"}},
      {"prod", {"a product along a dimension", "a product reduction"}},
      {"spatial_mean", {"a mean over the spatial dimensions", "global average pooling"}},
      {"spatial_sum", {"a sum over the spatial dimensions", "global sum pooling"}},
      {"matmul_tn", {"a product with the first matrix transposed", "A transposed times B"}},
      {"matmul_nt", {"a product with the second matrix transposed", "A times B transposed"}},
      {"matmul_tt", {"a product of two transposed matrices", "A transposed times B transposed"}},
      {"batched_matmul", {"a batched matrix product", "a product of stacks of matrices"}},
      {"batched_matmul_nt", {"a batched product with the second operand transposed", "attention-like scores"}},
      {"shared_matmul", {"a product of a tensor with one matrix", "one matrix for the whole batch"}},
      {"diag_matmul", {"a product with a diagonal matrix", "scaling of rows by a diagonal"}},
      {"scaled_dot_product_attention", {"scaled dot-product attention", "attention"}},
      {"dropout", {"dropout", "a dropout that is off"}},
      {"triplet_margin_loss", {"the triplet margin loss", "a triplet loss"}},
      {"depthwise_conv2d", {"a depthwise 2D convolution", "one filter per channel"}},
      {"pointwise_conv2d", {"a 1x1 convolution", "a pointwise convolution"}},
      {"batch_norm", {"batch normalization", "BatchNorm"}},
      {"layer_norm", {"layer normalization", "LayerNorm"}},
      {"rms_norm", {"RMS normalization", "RMSNorm"}},
      {"group_norm", {"group normalization", "GroupNorm"}},
      {"instance_norm", {"instance normalization", "InstanceNorm"}},
      {"softmax", {"softmax", "a softmax"}},
      {"log_softmax", {"log-softmax", "a log softmax"}},
      {"sum", {"a sum", "summation"}},
      {"mean", {"a mean", "averaging"}},
      {"amax", {"a maximum", "a max reduction"}},
      {"amin", {"a minimum", "a min reduction"}},
      {"logsumexp", {"log-sum-exp", "a logsumexp"}},
      {"cumsum", {"a cumulative sum", "a running total", "a prefix sum"}},
      {"cross_entropy", {"cross entropy", "the cross-entropy loss"}},
      {"mse_loss", {"mean squared error", "the MSE loss"}},
      {"embedding", {"an embedding lookup", "token embeddings"}},
  };
  if (auto it = phrases.find(node.op->name); it != phrases.end()) return rng.pick(it->second);
  std::string name = spaced(node.op->name);
  if (rng.uniform() < 0.5) return name;
  return (std::string("aeiou").find(name[0]) == std::string::npos ? "a " : "an ") + name;
}

std::string step_text(const Node& node, Rng& rng) {
  static const Words verbs = {"apply ", "", "now ", "step: ", "do ", "compute "};
  std::string phrase = phrase_of(node, rng), text = rng.pick(verbs) + phrase;
  return rng.uniform() < 0.6 ? capital(text) : text;
}

std::string shape_words(const Shape& shape) {
  Words words;
  for (const Dim& dim : shape) {
    bool simple = dim.text.find_first_of("(+-*/ ") == std::string::npos;
    words.push_back(simple ? dim.text : "...");
  }
  return words.empty() ? "()" : cat("(", join(words, ", "), words.size() == 1 ? ",)" : ")");
}

std::string class_sentence(const TensorGraph& graph, Writing::Docs docs, Rng& rng) {
  static const Words subjects = {"Module that",    "A module which",       "A small network that", "Layer that",
                                 "This model",     "Reference module; it", "A block that",         "Network that",
                                 "nn.Module that", "A compact model that", "Toy model; it",        "Component that",
                                 "Model that",     "Model which",          "Simple module that",   "A model that"};
  static const Words verbs = {"computes", "applies", "runs", "performs", "chains", "evaluates", "does", "consists of"};
  static const Words nominal = {"Implements ", "Computes ", "", "Combines ", "Forward of ", "Benchmark for "};
  static const Words tails = {"",
                              "",
                              "",
                              "",
                              " on its input",
                              " in sequence",
                              " and returns the result",
                              " over the given tensors",
                              " in one forward pass",
                              " without any other state"};
  std::string list = listed(graph, docs, rng);
  std::string text = rng.uniform() < 0.7 ? cat(rng.pick(subjects), " ", rng.pick(verbs), " ", list)
                                         : capital(rng.pick(nominal) + list);
  text += rng.pick(tails);
  static const Words second = {" Inputs are drawn at random.",
                               " All tensors are contiguous.",
                               " The input keeps its dtype.",
                               " Meant as one fused operation.",
                               " Shapes are fixed by the constants of this file.",
                               " Used in inference."};
  if (rng.uniform() < 0.15) return text + "." + rng.pick(second);
  return with_stop(text, rng);
}

std::string init_sentence(const TensorGraph& graph, Writing::Docs docs, Rng& rng) {
  static const Words starts = {"Set up ", "Create ", "Build ", "Prepare ", "Construct ", "Initialize ", "Sets up "};
  static const Words objects = {"the layers",     "the module",
                                "the parameters", "everything that forward() needs",
                                "the model",      "what the forward pass uses"};
  std::string text = rng.pick(starts) + rng.pick(objects);
  if (rng.uniform() < 0.3) text += " for " + listed(graph, docs, rng);
  return with_stop(text, rng);
}

std::string forward_sentence(const TensorGraph& graph, Writing::Docs docs, Rng& rng) {
  static const Words starts = {"Run ",     "Apply ", "Compute ",  "Forward pass: ", "Applies ",
                               "Returns ", "Do ",    "Forward: ", "Evaluate ",      "Computes "};
  static const Words plain = {"Forward pass",        "Run the model",      "One pass over the input",
                              "Forward computation", "Compute the output", "Apply the module to its inputs"};
  return with_stop(rng.uniform() < 0.7 ? rng.pick(starts) + listed(graph, docs, rng) : rng.pick(plain), rng);
}

Described describe_argument(const std::string& name, const std::string& type, const std::string& preset, Rng& rng) {
  static const std::map<std::string, Words> texts = {
      {"in_channels", {"channels of the input", "how many channels come in"}},
      {"out_channels", {"channels of the output", "number of filters"}},
      {"in_features", {"size of each input row", "features that come in"}},
      {"out_features", {"size of each output row", "features that go out"}},
      {"kernel_size", {"extent of the window", "width of the filter"}},
      {"stride", {"step of the window", "distance between windows"}},
      {"padding", {"border added on both sides", "zeros around the input"}},
      {"eps", {"small number that keeps the division stable", "added under the root"}},
      {"negative_slope", {"slope for negative values", "factor below zero"}},
      {"dim", {"dimension to work along", "axis of the operation"}},
      {"keepdim", {"whether the reduced dimension stays with size 1", "keep the dimension"}},
      {"dilation", {"distance between the taps of the window", "spacing of the filter"}},
      {"groups", {"number of groups of channels", "groups that do not see each other"}},
      {"output_padding", {"rows added at one side of the output", "extra size of the output"}},
      {"ceil_mode", {"round the output size up", "whether the last window may be partial"}},
      {"count_include_pad", {"whether the border counts in the mean"}},
      {"return_indices", {"whether to give the places of the maxima, too"}},
      {"momentum", {"weight of the newest statistics", "rate of the running averages"}},
      {"affine", {"whether there are a weight and a bias for each channel"}},
      {"margin", {"distance that is demanded", "how far apart the two must be"}},
      {"output_size", {"size of the output", "places that are left of each dimension"}},
      {"bias", {"whether a bias is added", "use a bias"}},
      {"num_groups", {"number of channel groups", "groups to normalize in"}},
  };
  static const Words starts = {"the ", "value of the ", "", "chosen "};
  auto it = texts.find(name);
  std::string text = it != texts.end() ? rng.pick(it->second) : rng.pick(starts) + spaced(name);
  text = with_stop(rng.uniform() < 0.7 ? capital(text) : text, rng);
  if (preset.empty() || rng.uniform() < 0.3) return {name, type, text};
  static const Words defaults = {"Defaults to ", "Default: ", "By default "};
  text += (text.back() == '.' ? " " : ". ") + rng.pick(defaults) + preset;
  return {name, type + (rng.uniform() < 0.7 ? ", optional" : ""), with_stop(text, rng)};
}

namespace {

// A shape that the tensor might have: a dimension fewer, one kept, one more.
Shape near_shape(Shape shape, Rng& rng) {
  const auto last = rng.below(3);
  if (last == 0 || shape.size() < 2) {
    shape.emplace_back();
  } else if (last == 1) {
    shape.back() = Dim();
  } else {
    shape.pop_back();
  }
  return shape;
}

// A shape as a docstring has it: the tensor's own, "any shape", or that of another time.
std::string told_shape(const Shape& shape, Writing::Docs docs, Rng& rng) {
  static const Words vague = {"any shape", "(*)", "(batch_size, ...)", "the usual shape", "(N, *)"};
  static const Words stale = {"(M, K)", "(K, N)", "(B, C, H, W)", "(batch_size, dim)", "(batch_size, 1)", "(N, L, D)"};
  if (docs == Writing::Docs::kTrue) return shape_words(shape);
  if (docs == Writing::Docs::kStale && rng.uniform() < 0.6) return shape_words(near_shape(shape, rng));
  return rng.pick(docs == Writing::Docs::kVague ? vague : stale);
}

}  // namespace

Described describe_input(const std::string& name, const Node& node, Writing::Docs docs, Rng& rng) {
  static const Words nouns = {"Input tensor", "Tensor", "Input", "Activations", "Values", "Data", "Operand"};
  static const Words indices = {"Indices", "Integer tensor", "Class indices", "Positions"};
  static const Words joints = {" of shape ", " with shape ", ", shape ", " shaped ", ": "};
  std::string noun = rng.pick(node.type == Type::kInt64 ? indices : nouns);
  return {name, "torch.Tensor", with_stop(noun + rng.pick(joints) + told_shape(node.shape, docs, rng), rng)};
}

std::string describe_output(const TensorGraph& graph, Writing::Docs docs, Rng& rng) {
  static const Words nouns = {"Output", "Result", "Output tensor", "Tensor", "The result", "The outcome"};
  if (graph.outputs.size() > 1) return with_stop(cat("Tuple of ", graph.outputs.size(), " tensors"), rng);
  const Shape& shape = graph[graph.outputs[0]].shape;
  if (shape.empty()) return with_stop(rng.pick(Words{"A scalar", "Scalar tensor", "One number"}), rng);
  static const Words joints = {" of shape ", " with shape ", ", shape ", ": "};
  // Of all that a docstring says, what comes out is the first to be forgotten.
  if (docs == Writing::Docs::kTrue && rng.uniform() < 0.2) docs = Writing::Docs::kStale;
  return with_stop(rng.pick(nouns) + rng.pick(joints) + told_shape(shape, docs, rng), rng);
}

std::string docstring(const std::string& sentence, const std::vector<Described>& arguments, const std::string& returns,
                      Writing::Layout layout, int depth) {
  std::string in(static_cast<size_t>(depth) * 4, ' ');
  bool bare = arguments.empty() && returns.empty();
  if (layout == Writing::Layout::kLine || (layout == Writing::Layout::kSphinx && bare && sentence.size() < 70))
    return cat(in, "\"\"\"", join(wrapped(sentence, 96), "\n" + in), "\"\"\"\n");
  std::string out = cat(in, "\"\"\"\n");
  auto line = [&](const std::string& text) { out += text.empty() ? "\n" : in + text + "\n"; };
  for (const std::string& text : wrapped(sentence, 96)) line(text);
  if (!bare) line("");
  if (layout == Writing::Layout::kSphinx) {
    for (const Described& a : arguments) line(cat(":param ", a.name, ": ", a.text));
    if (!returns.empty()) line(":return: " + returns);
  } else {
    bool numpy = layout == Writing::Layout::kNumpy;
    if (!arguments.empty()) line(numpy ? "Parameters" : "Args:");
    if (!arguments.empty() && numpy) line("----------");
    for (const Described& a : arguments) {
      if (numpy) {
        line(a.name + " : " + a.type);
        line("    " + a.text);
      } else {
        line(cat("    ", a.name, a.type.empty() ? "" : " (" + a.type + ")", ": ", a.text));
      }
    }
    if (!arguments.empty() && !returns.empty()) line("");
    if (!returns.empty()) {
      line(numpy ? "Returns" : "Returns:");
      if (numpy) line("-------");
      line((numpy ? "" : "    ") + cat("torch.Tensor", numpy ? "" : ": " + returns));
      if (numpy) line("    " + returns);
    }
  }
  return out + in + "\"\"\"\n";
}

}  // namespace tritonrl::graphs
