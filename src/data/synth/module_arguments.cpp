// SPDX-License-Identifier: Apache-2.0
// What constructors of torch.nn take, and what PyTorch takes where nothing is said.
#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "data/synth/writing.h"

namespace tritonrl::graphs {

const std::vector<CallParameter>& parameters_of(const std::string& callee) {
  using List = std::vector<CallParameter>;
  static const CallParameter kStride{"stride", "1"}, kPadding{"padding", "0"}, kDilation{"dilation", "1"},
      kGroups{"groups", "1"}, kBias{"bias", "True"}, kOwnStride{"stride", "None"}, kCeil{"ceil_mode", "False"},
      kCounted{"count_include_pad", "True"}, kEps{"eps", "1e-5"}, kMomentum{"momentum", "0.1"};
  static const std::map<std::string, List> lists = {
      {"nn.ConvNd", {{"in_channels"}, {"out_channels"}, {"kernel_size"}, kStride, kPadding, kDilation, kGroups, kBias}},
      {"nn.ConvTransposeNd",
       {{"in_channels"},
        {"out_channels"},
        {"kernel_size"},
        kStride,
        kPadding,
        {"output_padding", "0"},
        kGroups,
        kBias,
        kDilation}},
      {"nn.Linear", {{"in_features"}, {"out_features"}, kBias}},
      {"nn.MaxPoolNd", {{"kernel_size"}, kOwnStride, kPadding, kDilation, {"return_indices", "False"}, kCeil}},
      {"nn.AvgPoolNd", {{"kernel_size"}, kOwnStride, kPadding, kCeil, kCounted}},
      {"nn.AdaptiveAvgPoolNd", {{"output_size"}}},
      {"nn.AdaptiveMaxPoolNd", {{"output_size"}}},
      // Not every pool of F takes stride=None.
      {"F.max_poolNd", {{"input"}, {"kernel_size"}, {"stride"}, kPadding, kDilation, kCeil}},
      {"F.avg_poolNd", {{"input"}, {"kernel_size"}, {"stride"}, kPadding, kCeil, kCounted}},
      {"F.adaptive_avg_poolNd", {{"input"}, {"output_size"}}},
      {"F.adaptive_max_poolNd", {{"input"}, {"output_size"}}},
      {"nn.BatchNormNd", {{"num_features"}, kEps, kMomentum, {"affine", "True"}}},
      {"nn.InstanceNormNd", {{"num_features"}, kEps, kMomentum, {"affine", "False"}}},
      {"nn.GroupNorm", {{"num_groups"}, {"num_channels"}, kEps, {"affine", "True"}}},
      {"nn.LayerNorm", {{"normalized_shape"}, kEps, {"elementwise_affine", "True"}, kBias}},
      {"nn.RMSNorm", {{"normalized_shape"}, {"eps"}, {"elementwise_affine", "True"}}},
      {"nn.PReLU", {{"num_parameters", "1"}, {"init", "0.25"}}},
      {"nn.Dropout", {{"p", "0.5"}, {"inplace", "False"}}},
      {"nn.TripletMarginLoss", {{"margin", "1.0"}, {"p", "2.0"}, {"eps", "1e-6"}, {"swap", "False"}}},
  };
  static const List kNone;
  std::string any = callee;
  if (any.size() > 2 && any.back() == 'd' && std::isdigit(static_cast<unsigned char>(any[any.size() - 2])))
    any[any.size() - 2] = 'N';
  auto it = lists.find(any);
  return it == lists.end() ? kNone : it->second;
}

Call taken_apart(const std::string& text) {
  size_t open = text.find('(');
  Call call{text.substr(0, open), {}};
  int depth = 0;
  std::string current;
  for (size_t i = open + 1; i + 1 < text.size(); ++i) {
    char c = text[i];
    depth += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
    if (c == ',' && depth == 0) {
      call.arguments.push_back(trim(current));
      current.clear();
    } else {
      current += c;
    }
  }
  if (!trim(current).empty()) call.arguments.push_back(trim(current));
  return call;
}

std::string usual_scalar(const std::string& op, const std::string& key) {
  static const std::map<std::string, std::string> values = {
      {"leaky_relu a", "0.01"},
      {"elu a", "1.0"},
      {"celu a", "1.0"},
      {"hardtanh a", "-1.0"},
      {"hardtanh b", "1.0"},
      {"softshrink a", "0.5"},
      {"hardshrink a", "0.5"},
      {"softplus_beta a", "1.0"},
      {"smooth_l1_loss a", "1.0"},
      {"huber_loss a", "1.0"},
      {"hinge_loss a", "1.0"},
      {"triplet_margin_loss a", "1.0"},
      {"cross_entropy_smoothed a", "0.0"},
  };
  auto it = values.find(op + " " + key);
  return it == values.end() ? "" : it->second;
}

}  // namespace tritonrl::graphs
