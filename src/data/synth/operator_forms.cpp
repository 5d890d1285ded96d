// SPDX-License-Identifier: Apache-2.0
// The other ways to write an operator: function, method, module, formula. An operator that is not here has one.
#include <algorithm>

#include "base/text.h"
#include "data/synth/operators.h"
#include "data/synth/writing.h"

namespace tritonrl::graphs {

namespace {

struct Ways {
  std::vector<std::string> texts, modules;
  std::vector<std::string> formulas = {};  // Other roundings in half precision: for float32 alone.
};

const std::map<std::string, Ways>& pointwise_ways() {
  static const std::map<std::string, Ways> ways = {
      {"relu", {{"F.relu({x})", "{x}.relu()", "torch.clamp({x}, min=0.0)"}, {"nn.ReLU()"}}},
      {"sigmoid", {{"{x}.sigmoid()", "F.sigmoid({x})"}, {"nn.Sigmoid()"}, {"1.0 / (1.0 + torch.exp(-{x}))"}}},
      {"tanh", {{"{x}.tanh()", "F.tanh({x})"}, {"nn.Tanh()"}}},
      {"silu", {{}, {"nn.SiLU()"}, {"{x} * torch.sigmoid({x})", "torch.sigmoid({x}) * {x}"}}},
      {"gelu", {{}, {"nn.GELU()"}}},
      {"gelu_tanh",
       {{},
        {"nn.GELU(approximate=\"tanh\")"},
        {"0.5 * {x} * (1.0 + torch.tanh(0.7978845608 * ({x} + 0.044715 * torch.pow({x}, 3))))"}}},
      {"exp", {{"{x}.exp()"}, {}}},
      {"abs", {{"{x}.abs()"}, {}}},
      {"neg", {{"torch.neg({x})", "{x}.neg()"}, {}}},
      {"square", {{"{x} ** 2", "{x}.pow(2)", "torch.pow({x}, 2)", "{x} * {x}", "{x}.square()"}, {}}},
      {"sqrt", {{"{x}.sqrt()", "{x} ** 0.5"}, {}}},
      {"softplus", {{}, {"nn.Softplus()"}}},
      {"hardswish",
       {{},
        {"nn.Hardswish()"},
        {"{x} * torch.clamp(({x} + 3) / 6, 0, 1)", "{x} * F.relu6({x} + 3) / 6",
         "{x} * torch.clamp({x} + 3, 0, 6) / 6"}}},
      {"mish",
       {{}, {"nn.Mish()"}, {"{x} * torch.tanh(F.softplus({x}))", "torch.multiply(torch.tanh(F.softplus({x})), {x})"}}},
      {"relu6", {{"torch.clamp({x}, 0.0, 6.0)", "torch.clamp({x}, min=0.0, max=6.0)"}, {"nn.ReLU6()"}}},
      {"hardsigmoid",
       {{}, {"nn.Hardsigmoid()"}, {"torch.clamp(({x} + 3) / 6, 0, 1)", "torch.clamp({x} / 6 + 0.5, min=0, max=1)"}}},
      {"selu", {{"torch.selu({x})"}, {"nn.SELU()"}}},
      {"softsign", {{}, {"nn.Softsign()"}, {"{x} / (1.0 + torch.abs({x}))", "{x} / (1 + {x}.abs())"}}},
      {"tanhshrink", {{}, {"nn.Tanhshrink()"}}},
      {"logsigmoid", {{}, {"nn.LogSigmoid()"}}},
      {"sin", {{"{x}.sin()"}, {}}},
      {"cos", {{"{x}.cos()"}, {}}},
      {"erf", {{"{x}.erf()", "torch.special.erf({x})"}, {}}},
      {"exp2", {{"{x}.exp2()"}, {}}},
      {"expm1", {{"{x}.expm1()"}, {}}},
      {"log1p", {{"{x}.log1p()"}, {}}},
      {"log", {{"{x}.log()"}, {}}},
      {"log2", {{"{x}.log2()"}, {}}},
      {"log10", {{"{x}.log10()"}, {}}},
      {"rsqrt", {{"{x}.rsqrt()"}, {}}},
      {"reciprocal", {{"1.0 / {x}", "{x}.reciprocal()"}, {}}},
      {"cube", {{"{x} ** 3", "{x}.pow(3)"}, {}}},
      {"leaky_relu",
       {{"F.leaky_relu({x}, negative_slope={a})"}, {"nn.LeakyReLU({a})", "nn.LeakyReLU(negative_slope={a})"}}},
      {"elu", {{"F.elu({x}, alpha={a})"}, {"nn.ELU({a})", "nn.ELU(alpha={a})"}}},
      {"celu", {{"F.celu({x}, alpha={a})"}, {"nn.CELU({a})", "nn.CELU(alpha={a})"}}},
      {"clamp",
       {{"torch.clamp({x}, min={a}, max={b})", "{x}.clamp({a}, {b})", "{x}.clamp(min={a}, max={b})",
         "torch.clip({x}, {a}, {b})"},
        {}}},
      {"hardtanh",
       {{"F.hardtanh({x}, min_val={a}, max_val={b})"},
        {"nn.Hardtanh({a}, {b})", "nn.Hardtanh(min_val={a}, max_val={b})"}}},
      {"clamp_min",
       {{"{x}.clamp(min={a})", "torch.clamp_min({x}, {a})", "torch.clamp({x}, {a})",
         "torch.max({x}, torch.tensor({a}, device={x}.device))", "torch.max({x}, torch.tensor({a}))"},
        {}}},
      {"clamp_max",
       {{"{x}.clamp(max={a})", "torch.clamp_max({x}, {a})", "torch.min({x}, torch.tensor({a}, device={x}.device))",
         "torch.min({x}, torch.tensor({a}))"},
        {}}},
      {"softshrink", {{"F.softshrink({x}, lambd={a})"}, {"nn.Softshrink({a})"}}},
      {"hardshrink", {{"F.hardshrink({x}, lambd={a})"}, {"nn.Hardshrink({a})"}}},
      {"threshold", {{}, {"nn.Threshold({a}, {b})"}}},
      {"add_scalar", {{"torch.add({x}, {a})", "{a} + {x}"}, {}}},
      {"sub_scalar", {{"torch.sub({x}, {a})"}, {}}},
      {"mul_scalar", {{"{a} * {x}", "torch.mul({x}, {a})", "{x}.mul({a})"}, {}}},
      {"div_scalar", {{"torch.div({x}, {a})", "{x}.div({a})"}, {}}},
      {"add", {{"torch.add({x}, {y})", "{x}.add({y})"}, {}}},
      {"sub", {{"torch.sub({x}, {y})", "torch.subtract({x}, {y})"}, {}}},
      {"mul", {{"torch.mul({x}, {y})", "torch.multiply({x}, {y})"}, {}}},
      {"div", {{"torch.div({x}, {y})"}, {}}},
      {"maximum", {{"torch.max({x}, {y})"}, {}}},
      {"minimum", {{"torch.min({x}, {y})"}, {}}},
      {"pow_scalar", {{"{x} ** {a}", "{x}.pow({a})"}, {}}},
      {"softplus_beta", {{}, {"nn.Softplus(beta={a})"}}},
      {"squared_difference", {{"torch.square({x} - {y})", "torch.pow({x} - {y}, 2)", "({x} - {y}).pow(2)"}, {}}},
      {"sinh", {{"{x}.sinh()"}, {}}},
      {"cosh", {{"{x}.cosh()"}, {}}},
      {"sign", {{"{x}.sign()"}, {}}},
      {"floor", {{"{x}.floor()"}, {}}},
      {"ceil", {{"{x}.ceil()"}, {}}},
      {"mse_loss",
       {{},
        {"nn.MSELoss({nn_reduction})"},
        {"torch.{hinge}(({x} - {y}) ** 2)", "torch.{hinge}(torch.square({x} - {y}))"}}},
      {"l1_loss", {{}, {"nn.L1Loss({nn_reduction})"}, {"torch.{hinge}(torch.abs({x} - {y}))"}}},
      {"smooth_l1_loss", {{}, {"nn.SmoothL1Loss(beta={a}{reduction})"}}},
      {"huber_loss", {{}, {"nn.HuberLoss(delta={a}{reduction})"}}},
      {"soft_margin_loss", {{}, {"nn.SoftMarginLoss({nn_reduction})"}}},
      {"binary_cross_entropy", {{}, {"nn.BCELoss({nn_reduction})"}}},
      {"binary_cross_entropy_with_logits", {{}, {"nn.BCEWithLogitsLoss({nn_reduction})"}}},
      {"cross_entropy", {{}, {"nn.CrossEntropyLoss({nn_reduction})"}}},
      {"cross_entropy_smoothed", {{}, {"nn.CrossEntropyLoss(label_smoothing={a}{reduction})"}}},
      {"nll_loss", {{}, {"nn.NLLLoss({nn_reduction})"}}},
  };
  return ways;
}

const std::map<std::string, Ways>& other_ways() {
  static const std::map<std::string, Ways> ways = {
      {"sum", {{"{x}.sum({of})"}, {}}},
      {"mean", {{"{x}.mean({of})"}, {}}},
      {"amax", {{"{x}.amax({of})"}, {}}},
      {"amin", {{"{x}.amin({of})"}, {}}},
      {"argmax", {{"{x}.argmax({of})"}, {}}},
      {"argmin", {{"{x}.argmin({of})"}, {}}},
      {"logsumexp", {{"{x}.logsumexp({of})"}, {}}},
      {"l1_norm", {{"{x}.norm(p=1{over})", "torch.sum(torch.abs({x}){over})"}, {}}},
      {"l2_norm", {{"{x}.norm(p=2{over})"}, {}}},
      {"pairwise_dot", {{"({x} * {y}).sum({of})"}, {}}},
      {"softmax", {{"F.softmax({x}, dim={dim})", "{x}.softmax(dim={dim})"}, {"nn.Softmax(dim={dim})"}}},
      {"softmin", {{}, {"nn.Softmin(dim={dim})"}}},
      {"log_softmax",
       {{"torch.log_softmax({x}, dim={dim})", "{x}.log_softmax(dim={dim})"}, {"nn.LogSoftmax(dim={dim})"}}},
      {"normalize",
       {{"F.normalize({x}, p=2, dim={dim})", "F.normalize({x}, p=2.0, dim={dim})"},
        {},
        {"{x} / torch.norm({x}, p=2, dim={dim}, keepdim=True)", "{x} / {x}.norm(p=2, dim={dim}, keepdim=True)",
         "let norm = torch.norm({x}, p=2, dim={dim}, keepdim=True) in {x} / {own}"}}},
      {"normalize_l1",
       {{"F.normalize({x}, p=1, dim={dim})"},
        {},
        {"{x} / torch.sum(torch.abs({x}), dim={dim}, keepdim=True)",
         "let norm = torch.sum(torch.abs({x}), dim={dim}, keepdim=True) in {x} / {own}"}}},
      {"mean_abs_normalize",
       {{"{x} / {x}.abs().mean(dim={dim}, keepdim=True)",
         "let scale = torch.mean(torch.abs({x}), dim={dim}, keepdim=True) in {x} / {own}"},
        {}}},
      {"rms_normalize",
       {{"{x} * torch.rsqrt(torch.mean({x} ** 2, dim={dim}, keepdim=True) + {a})",
         "let rms = torch.sqrt(torch.mean({x} ** 2, dim={dim}, keepdim=True) + {a}) in {x} / {own}",
         "let rms = torch.sqrt(torch.mean({x} ** 2, dim={dim}, keepdim=True) + {a}) in {x} / {own}"},
        {}}},
      {"center",
       {{"{x} - torch.mean({x}, dim={dim}, keepdim=True)",
         "let mean = {x}.mean(dim={dim}, keepdim=True) in {x} - {own}"},
        {}}},
      {"cumsum", {{"{x}.cumsum(dim={dim})", "{x}.cumsum({dim})"}, {}}},
      {"reverse_cumsum", {{"{x}.flip({dim}).cumsum(dim={dim}).flip({dim})"}, {}}},
      {"cumprod", {{"{x}.cumprod(dim={dim})"}, {}}},
      {"cummax", {{"torch.cummax({x}, dim={dim}).values", "{x}.cummax(dim={dim})[0]"}, {}}},
      {"cummin", {{"torch.cummin({x}, dim={dim}).values", "{x}.cummin(dim={dim})[0]"}, {}}},
      {"transpose", {{"torch.transpose({x}, {dim0}, {dim1})", "{x}.transpose({dim1}, {dim0})"}, {}}},
      {"permute", {{"torch.permute({x}, ({order}))"}, {}}},
      {"flip", {{"{x}.flip({dim})", "torch.flip({x}, [{dim}])"}, {}}},
      {"roll", {{"{x}.roll({shift}, {dim})"}, {}}},
      {"flatten", {{"{x}.flatten({from})", "torch.flatten({x}, {from})"}, {"nn.Flatten(start_dim={from})"}}},
      {"unsqueeze", {{"torch.unsqueeze({x}, {dim})", "{x}.unsqueeze(dim={dim})"}, {}}},
      {"cat",
       {{"torch.cat(({x}, {y}), dim={dim})", "torch.cat([{x}, {y}], {dim})", "torch.concat([{x}, {y}], dim={dim})"},
        {}}},
      {"stack", {{"torch.stack(({x}, {y}), dim={dim})"}, {}}},
      {"narrow", {{"{x}.narrow({dim}, {start}, {length})"}, {}}},
      {"chunk_glu", {{"{x}.chunk(2, dim={dim})[{part}]"}, {}}},
      {"tril", {{"{x}.tril({diagonal})"}, {}}},
      {"triu", {{"{x}.triu({diagonal})"}, {}}},
      {"gather", {{"{x}.gather({dim}, {y})"}, {}}},
      {"index_select", {{"{x}.index_select({dim}, {y})"}, {}}},
      {"max_dim", {{"torch.max({x}{over}).values", "{x}.max({of})[0]", "{x}.max({of}).values"}, {}}},
      {"min_dim", {{"torch.min({x}{over}).values", "{x}.min({of})[0]", "{x}.min({of}).values"}, {}}},
      {"prod", {{"{x}.prod({of})"}, {}}},
      {"spatial_mean", {{"{x}.mean({of})"}, {}}},
      {"spatial_sum", {{"{x}.sum({of})"}, {}}},
      {"matmul_tn", {{"torch.mm({x}.T, {y})", "{x}.t() @ {y}", "torch.matmul({x}.transpose(0, 1), {y})"}, {}}},
      {"matmul_nt", {{"torch.mm({x}, {y}.T)", "{x} @ {y}.t()", "F.linear({x}, {y})"}, {}}},
      {"matmul_tt", {{"torch.mm({x}.T, {y}.T)", "{x}.t() @ {y}.t()"}, {}}},
      {"batched_matmul", {{"{x} @ {y}", "{x}.matmul({y})"}, {}}},
      {"batched_matmul_nt", {{"{x} @ {y}.transpose(-2, -1)", "torch.matmul({x}, {y}.mT)"}, {}}},
      {"shared_matmul", {{"{x} @ {y}", "{x}.matmul({y})"}, {}}},
      {"diag_matmul", {{"torch.matmul(torch.diag({y}), {x})", "{y}.diag() @ {x}", "{y}.unsqueeze(1) * {x}"}, {}}},
      {"triplet_margin_loss", {{}, {"nn.TripletMarginLoss(margin={a}{reduction})"}}},
      {"bmm", {{"torch.matmul({x}, {y})", "{x} @ {y}", "{x}.bmm({y})"}, {}}},
  };
  return ways;
}

// Are its numbers those that PyTorch takes where none are given?
bool takes_usual_numbers(const Node& node) {
  const char* const keys[] = {"a", "b"};
  for (size_t i = 0; i < node.numbers.size() && i < 2; ++i) {
    if (usual_scalar(node.op->name, keys[i]) != python_float(node.numbers[i])) return false;
  }
  return !node.numbers.empty();
}

}  // namespace

std::vector<Form> forms_of(const TensorGraph& graph, const Node& node) {
  const std::string& name = node.op->name;
  std::vector<Form> out = {{node.torch(), ""}};
  if (!node.module.empty()) return out;
  auto add = [&](const std::string& text) { out.push_back({text, ""}); };
  if (name == "matmul") {
    bool transposed = node.ints.at("transposed") != 0, flat = graph[node.operands[1]].shape.size() == 2;
    std::string y = !transposed ? "{y}" : flat ? "{y}.T" : "{y}.transpose(-2, -1)";
    for (const char* text : {"{x} @ ", "torch.matmul({x}, "}) add(text + y + (text[0] == 't' ? ")" : ""));
    if (flat && node.shape.size() == 2) add(cat("torch.mm({x}, ", y, ")"));
    return out;
  }
  auto found = pointwise_ways().find(name);
  if (found == pointwise_ways().end()) {
    found = other_ways().find(name);
    if (found == other_ways().end()) return out;
  }
  for (const std::string& text : found->second.texts) add(text);
  if (node.type == Type::kFloat32) {
    for (const std::string& text : found->second.formulas) add(text);
  }
  std::string call = node.op->arity == 3   ? "{self}({x}, {y}, {z})"
                     : node.op->arity == 2 ? "{self}({x}, {y})"
                                           : "{self}({x})";
  for (const std::string& module : found->second.modules) out.push_back({call, module});
  if (takes_usual_numbers(node)) {  // Nothing need be said.
    for (const std::string& module : found->second.modules)
      if (module.find("reduction}") == std::string::npos)
        out.push_back({call, module.substr(0, module.find('(')) + "()"});
    if (node.op->torch.rfind("F.", 0) == 0 && node.op->torch.find("reduction}") == std::string::npos)
      add(node.op->torch.substr(0, node.op->torch.find('(')) + "({x})");
  }
  return out;
}

std::string scalar_name(const std::string& op, const std::string& key, Rng& rng) {
  using Words = std::vector<std::string>;
  static const std::map<std::string, std::pair<Words, Words>> names = {
      {"leaky_relu", {{"negative_slope", "slope", "leak"}, {}}},
      {"elu", {{"alpha"}, {}}},
      {"celu", {{"alpha"}, {}}},
      {"clamp", {{"min_value", "clamp_min", "low", "min_val"}, {"max_value", "clamp_max", "high", "max_val"}}},
      {"hardtanh", {{"min_val", "hardtanh_min"}, {"max_val", "hardtanh_max"}}},
      {"clamp_min", {{"min_value", "clamp_min", "floor_value"}, {}}},
      {"clamp_max", {{"max_value", "clamp_max", "cap_value"}, {}}},
      {"add_scalar", {{"offset_value", "add_value", "constant", "shift_value"}, {}}},
      {"sub_scalar", {{"subtract_value", "sub_value", "offset_value"}, {}}},
      {"rsub_scalar", {{"minuend_value", "constant"}, {}}},
      {"mul_scalar", {{"scale_factor", "scaling_factor", "multiplier_value", "scale_value"}, {}}},
      {"div_scalar", {{"divisor", "divide_value", "divisor_value"}, {}}},
      {"softshrink", {{"lambd_value", "shrink_value"}, {}}},
      {"hardshrink", {{"lambd_value", "shrink_value"}, {}}},
      {"threshold", {{"threshold_value", "cutoff_value"}, {"fill_value", "replacement_value"}}},
      {"softplus_beta", {{"beta"}, {}}},
      {"pow_scalar", {{"exponent", "power"}, {}}},
      {"lerp", {{"weight_value", "mix_value"}, {}}},
      {"masked_fill", {{"threshold_value", "cutoff_value"}, {"fill_value", "masked_value"}}},
      {"huber_loss", {{"delta"}, {}}},
      {"smooth_l1_loss", {{"beta"}, {}}},
      {"hinge_loss", {{"margin"}, {}}},
      {"triplet_margin_loss", {{"margin"}, {}}},
      {"scaled_dot_product_attention", {{"scale", "attn_scale", "softmax_scale"}, {}}},
      {"cross_entropy_smoothed", {{"label_smoothing", "smoothing"}, {}}},
  };
  // A name does not say whether it is a number or a parameter: both are called "scale".
  static const Words kOfEither = {"scale",     "multiplier", "constant", "offset",        "shift",     "weight",
                                  "bias",      "value",      "factor",   "scaling",       "add_value", "subtract",
                                  "sum_value", "multiplier", "alpha",    "constant_value"};
  const bool arithmetic = op.size() > 7 && op.rfind("_scalar") == op.size() - 7;
  if (arithmetic && rng.uniform() < 0.35) return rng.pick(kOfEither);
  auto it = names.find(op);
  const Words* words = it == names.end() ? nullptr : key == "a" ? &it->second.first : &it->second.second;
  if (words == nullptr || words->empty()) return key == "a" ? "factor" : "fill_value";
  return rng.pick(*words);
}

}  // namespace tritonrl::graphs
