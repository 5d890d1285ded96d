// SPDX-License-Identifier: Apache-2.0
// Shape rules of pools and convolutions, in one to three dimensions.
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "data/synth/draft.h"

namespace tritonrl::graphs {

namespace {

// "3" or "(3, 5, 7)".
std::string each(const std::vector<Window>& windows, int64_t Window::*field) {
  std::vector<std::string> values;
  for (const Window& window : windows) values.push_back(cat(window.*field));
  bool alike = std::all_of(values.begin(), values.end(), [&](const std::string& v) { return v == values[0]; });
  return alike ? values[0] : "(" + join(values, ", ") + ")";
}

// ", stride=2" unless it is what the module takes anyway.
std::string argument(const char* name, const std::vector<Window>& windows, int64_t Window::*field,
                     const std::string& normal) {
  std::string value = each(windows, field);
  return value == normal ? "" : cat(", ", name, "=", value);
}

// What a window leaves of a dimension; nothing when either size has no room for it.
std::optional<Dim> swept(const Dim& size, const Window& w) {
  int64_t reach = w.dilation * (w.kernel - 1) + 1 - 2 * w.padding;
  if (size.is_one() || std::min(size.full, size.tiny) < reach + 1) return std::nullopt;
  return scaled_size(size, 1, w.stride - reach, w.stride);
}

// What a transposed convolution makes of it.
std::optional<Dim> spread(const Dim& size, const Window& w) {
  int64_t offset = w.dilation * (w.kernel - 1) + 1 + w.output_padding - 2 * w.padding - w.stride;
  if (size.is_one() || w.stride * std::min(size.full, size.tiny) + offset < 2) return std::nullopt;
  return scaled_size(size, w.stride, offset, 1);
}

// One window for all dimensions, or now and then another for each.
template <class Draw>
std::vector<Window> draw_windows(Draft& draft, int spatial, Draw draw) {
  std::vector<Window> windows(static_cast<size_t>(spatial), draw());
  if (spatial > 1 && draft.chance(0.25)) {
    for (Window& window : windows) window = draw();
  }
  return windows;
}

// Weights as PyTorch initialises them: the result of `count` terms, of which `fan_in` decide the deviation.
int convolved(Draft& draft, Node node, int64_t count, int64_t fan_in) {
  auto samples = draft.summed(node.operands[0], count, 1 / std::sqrt(3.0 * static_cast<double>(fan_in)));
  double bound = 6 * std::abs(*std::max_element(samples.begin(), samples.end())) + 1;
  return draft.compute(std::move(node), samples, -bound, bound);
}

}  // namespace

int spatial_dims(const Operator& op) {
  size_t at = op.name.find("d", op.name.find_first_of("123"));
  CHECK(at != std::string::npos && at > 0) << op.name << " does not say of how many dimensions it is";
  return op.name[at - 1] - '0';
}

int build_pool(Draft& draft, const Operator& op, int x) {
  int spatial = spatial_dims(op);
  const bool rows = spatial == 1 && draft.rank(x) == 2 && draft.layered;  // Batch and what is pooled.
  if (!draft.usable(x) || (draft.rank(x) != spatial + 2 && !rows)) return -1;
  bool maximum = op.name[0] == 'm';
  if (!maximum && spatial == 3 && is_half(draft.type)) return -1;  // PyTorch has none on the CPU.
  Node node;
  node.op = &op;
  node.operands = {x};
  node.type = draft.type;
  bool own_stride = draft.chance(0.3);
  node.windows = draw_windows(draft, spatial, [&] {
    Window w;
    w.kernel = draft.pick<int64_t>({2, 2, 3});
    w.stride = own_stride ? draft.pick<int64_t>({1, 2}) : w.kernel;
    w.padding = draft.chance(0.3) ? 1 : 0;
    w.dilation = maximum && draft.chance(0.12) ? 2 : 1;
    return w;
  });
  node.shape = draft.shape(x);
  for (size_t s = 0; s < node.windows.size(); ++s) {
    auto size = swept(node.shape[s + node.unswept()], node.windows[s]);
    if (!size) return -1;
    node.shape[s + node.unswept()] = *size;
  }
  if (draft.too_much(node.shape, node.taps())) return -1;
  const auto& w = node.windows;
  std::string kernel = each(w, &Window::kernel);
  std::string window =
      cat(draft.chance(0.3) ? "kernel_size=" : "", kernel, argument("stride", w, &Window::stride, kernel),
          argument("padding", w, &Window::padding, "0"), argument("dilation", w, &Window::dilation, "1"));
  draft.write(node, cat(maximum ? "nn.MaxPool" : "nn.AvgPool", spatial, "d(", window, ")"), "pool");
  node.call = replace_all(node.call, "{window}", window);
  const Values& v = draft.values(x);
  Rng own = Rng(85).at(draft.graph.nodes.size());
  std::vector<double> samples;
  int64_t count = node.taps();
  for (int j = 0; j < kSamples; ++j) {
    double top = -1e300, sum = 0;
    for (int64_t i = 0; i < count; ++i) {
      double value = own.pick(v.samples);
      top = std::max(top, value);
      sum += value / static_cast<double>(count);
    }
    samples.push_back(maximum ? top : sum);
  }
  return draft.compute(std::move(node), samples, maximum ? v.low : std::min(0.0, v.low),
                       maximum ? v.high : std::max(0.0, v.high));
}

int build_conv(Draft& draft, const Operator& op, int x) {
  int spatial = spatial_dims(op);
  if (!draft.usable(x) || draft.rank(x) != spatial + 2) return -1;
  bool depthwise = op.name.rfind("depthwise", 0) == 0, pointwise = op.name.rfind("pointwise", 0) == 0;
  bool transposed = op.name.rfind("conv_transpose", 0) == 0;
  Node node;
  node.op = &op;
  node.type = draft.type;
  node.shape = draft.shape(x);
  const Dim channels = node.shape[1];
  if (channels.is_one() || channels.full > 128) return -1;
  bool dilated = !pointwise && draft.chance(0.12), strided = !pointwise && draft.chance(transposed ? 0.6 : 0.35);
  node.windows = draw_windows(draft, spatial, [&] {
    Window w;
    if (pointwise) return w;
    w.kernel = draft.pick<int64_t>({2, 3, 3, 3, spatial < 3 ? 4 : 3});
    w.stride = strided ? draft.pick<int64_t>({2, 2, 3}) : 1;
    w.padding = draft.pick<int64_t>({0, 1, 1});
    w.dilation = dilated ? 2 : 1;
    w.output_padding = transposed && strided && draft.chance(0.4) ? 1 : 0;
    if (w.output_padding >= std::max(w.stride, w.dilation)) w.output_padding = 0;
    return w;
  });
  Dim out = depthwise ? channels : draft.symbol(spatial == 3 ? Role::kFewChannels : Role::kChannels);
  int64_t groups = draft.chance(0.15) ? 2 : 1;
  auto divides = [&](const Dim& dim) { return dim.full % groups == 0 && dim.tiny % groups == 0; };
  if (depthwise || pointwise || !divides(channels) || !divides(out)) groups = 1;
  auto part = [&](const Dim& dim) {
    return groups == 1 ? dim : Dim{cat("(", dim.text, " // ", groups, ")"), dim.full / groups, dim.tiny / groups};
  };
  // With groups, nothing but the bias tells the solution how many channels come out of a transposed one.
  bool bias = draft.chance(0.8) || (transposed && groups > 1);
  node.ints = {{"groups", depthwise ? 0 : groups}, {"bias", bias}, {"transposed", transposed}};
  node.member = draft.member(transposed ? draft.one_of({"conv_transpose", "deconv", "up"})
                                        : draft.one_of({"conv", "conv", "conv", "conv1"}));
  const auto& w = node.windows;
  std::string extra =
      cat(argument("stride", w, &Window::stride, "1"), argument("padding", w, &Window::padding, "0"),
          argument("output_padding", w, &Window::output_padding, "0"), argument("dilation", w, &Window::dilation, "1"),
          depthwise    ? ", groups={0}"
          : groups > 1 ? cat(", groups=", groups)
                       : "",
          bias ? "" : ", bias=False", draft.type_argument());
  node.module =
      cat("nn.Conv", transposed ? "Transpose" : "", spatial, "d({0}, {1}, ", each(w, &Window::kernel), extra, ")");
  node.module_dims = {channels, out};
  Shape weight = transposed ? Shape{channels, part(out)} : Shape{out, depthwise ? Dim() : part(channels)};
  for (size_t s = 0; s < w.size(); ++s) {
    weight.push_back(number(w[s].kernel));
    auto size = transposed ? spread(node.shape[s + 2], w[s]) : swept(node.shape[s + 2], w[s]);
    if (!size) return -1;
    node.shape[s + 2] = *size;
  }
  node.shape[1] = out;
  int64_t each_in = depthwise ? 1 : part(channels).full, count = each_in * node.taps();
  if (draft.too_much(node.shape, count)) return -1;
  node.operands = {x, draft.parameter(weight, "", node.member + ".weight")};
  if (bias) node.operands.push_back(draft.parameter({out}, "", node.member + ".bias"));
  int64_t fan_in = transposed ? part(out).full * node.taps() : count;
  for (const Window& window : w) count = transposed ? std::max<int64_t>(1, count / window.stride) : count;
  return convolved(draft, std::move(node), count, fan_in);
}

}  // namespace tritonrl::graphs
