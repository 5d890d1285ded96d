// SPDX-License-Identifier: Apache-2.0
// The Triton side of a recipe: one kernel and the ModelNew that launches it.
#include "base/check.h"
#include "base/text.h"
#include "data/recipe.h"
#include "data/recipe_parts.h"

namespace tritonrl {

namespace {

constexpr char kHead[] =
    "import torch\nimport torch.nn as nn\nimport triton\nimport triton.language as tl\n\n\n@triton.jit\ndef kernel(";

std::string line(const std::string& text) { return "    " + text + "\n"; }

std::string steps_in_triton(const std::vector<Step>& steps) {
  std::string out;
  for (const Step& step : steps) {
    out += line("x = " + fill_template(step.op->triton, operand_names(step), step.attributes));
  }
  return out;
}

// Where an input is read, by family: "y_ptr + off, mask" and its broadcast forms.
std::string address_of(const Recipe& recipe, size_t index) {
  std::string pointer = input_name(index) + "_ptr + ";
  bool gemm = recipe.family == Family::kGemm, flat = recipe.family == Family::kElementwise;
  switch (recipe.inputs[index].layout) {
    case Layout::kRow:
      return pointer + (gemm ? "j, j < N" : flat ? "off % N, mask" : "i, mask");
    case Layout::kColumn:
      return pointer + (gemm ? "i, i < M" : flat ? "off // N, mask" : "p");
    default:
      return pointer + "off, mask";
  }
}

std::string loads(const Recipe& recipe, size_t first) {
  std::string out;
  for (size_t i = first; i < recipe.inputs.size(); ++i) {
    out += line(cat(input_name(i), " = tl.load(", address_of(recipe, i), ")"));
  }
  return out;
}

std::string pointers(const Recipe& recipe) {
  std::vector<std::string> names;
  for (size_t i = 0; i < recipe.inputs.size(); ++i) names.push_back(input_name(i) + "_ptr");
  if (recipe.core.weight || recipe.core.op == "linear") names.push_back("w_ptr");
  if (recipe.core.bias) names.push_back("b_ptr");
  names.push_back("out_ptr");
  return join(names, ", ");
}

std::string launch_tensors(const Recipe& recipe) {
  std::string module = recipe.core.op == "linear" ? "self.linear" : "self.norm", out = input_names(recipe);
  if (recipe.core.weight || recipe.core.op == "linear") out += ", " + module + ".weight";
  if (recipe.core.bias) out += ", " + module + ".bias";
  return out + ", out";
}

std::string module_with(const Recipe& recipe, const std::vector<std::string>& body) {
  std::string out = cat("\n\nclass ModelNew(nn.Module):\n", constructor_of(recipe), "    def forward(self, ",
                        input_names(recipe), "):\n");
  for (const std::string& text : body) out += line("    " + text);
  return out + line("    return out");
}

// A core that works on the block of one row. Values outside the mask are undefined before it, so each core masks first.
std::string row_core(const Core& core, const std::string& count) {
  const std::string& op = core.op;
  std::string masked = "tl.where(mask, x, 0.0)";
  auto sum = [](const std::string& value) { return cat("tl.sum(", value, ", 0)"); };
  if (op == "sum") return line("x = " + sum(masked));
  if (op == "mean") return line(cat("x = ", sum(masked), " / ", count));
  if (op == "amax") return line("x = tl.max(tl.where(mask, x, -float(\"inf\")), 0)");
  if (op == "amin") return line("x = tl.min(tl.where(mask, x, float(\"inf\")), 0)");
  if (op == "l1_norm") return line("x = tl.where(mask, x, 0.0)") + line("x = " + sum("tl.abs(x)"));
  if (op == "l2_norm") return line("x = tl.where(mask, x, 0.0)") + line(cat("x = tl.sqrt(", sum("x * x"), ")"));
  if (op == "logsumexp") {
    return line("x = tl.where(mask, x, -float(\"inf\"))") + line("m = tl.max(x, 0)") +
           line(cat("x = m + tl.log(", sum("tl.exp(x - m)"), ")"));
  }
  if (op == "softmax" || op == "softmin") {
    return (op == "softmin" ? line("x = -x") : "") + line("x = tl.where(mask, x, -float(\"inf\"))") +
           line("x = tl.exp(x - tl.max(x, 0))") + line("x = x / " + sum("x"));
  }
  if (op == "log_softmax") {
    return line("x = tl.where(mask, x, -float(\"inf\"))") + line("x = x - tl.max(x, 0)") +
           line(cat("x = x - tl.log(", sum("tl.exp(x)"), ")"));
  }
  if (op == "normalize") {
    std::string norm = core.p == 1 ? sum("tl.abs(x)") : cat("tl.sqrt(", sum("x * x"), ")");
    return line("x = tl.where(mask, x, 0.0)") + line(cat("x = x / tl.maximum(", norm, ", 1e-12)"));
  }
  if (op == "rms_norm") {
    return line("x = tl.where(mask, x, 0.0)") +
           line(cat("x = x / tl.sqrt(", sum("x * x"), " / ", count, " + ", python_float(core.eps), ")"));
  }
  // What is left looks at deviations from the mean.
  std::string out = line(cat("m = ", sum(masked), " / ", count)) + line("x = tl.where(mask, x - m, 0.0)");
  std::string variance = cat(sum("x * x"), " / ", count);
  if (op == "var") return out + line("x = " + variance);
  if (op == "std") return out + line(cat("x = tl.sqrt(", variance, ")"));
  CHECK(op == "layer_norm") << "no kernel for " << op;
  return out + line(cat("x = x / tl.sqrt(", variance, " + ", python_float(core.eps), ")"));
}

std::string elementwise_solution(const Recipe& recipe) {
  bool broadcasts = false;
  for (const RecipeInput& input : recipe.inputs) broadcasts |= input.layout != Layout::kFull;
  std::string launch = cat("kernel[(triton.cdiv(n, 1024),)](", launch_tensors(recipe), ", n, ",
                           broadcasts ? "x.shape[1], " : "", "1024)");
  return cat(kHead, pointers(recipe), ", n, ", broadcasts ? "N, " : "", "BLOCK: tl.constexpr):\n",
             line("off = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)"), line("mask = off < n"), loads(recipe, 0),
             keeps_input(recipe) ? line("r = x") : "", steps_in_triton(recipe.before),
             line("tl.store(out_ptr + off, x, mask)"),
             module_with(recipe, {"out = torch.empty_like(x)", "n = x.numel()", launch}));
}

std::string row_solution(const Recipe& recipe) {
  const Core& core = recipe.core;
  bool first = core.first_dim, reduces = recipe.family == Family::kReduction;
  std::string count = first ? "M" : "N", sizes = first ? "M, N" : "N", programs = first ? "N" : "M";
  std::string shape = !core.keepdim ? programs : first ? "1, N" : "M, 1";
  std::string affine;
  if (core.weight) affine += line("x = x * tl.load(w_ptr + i, mask)");
  if (core.bias) affine += line("x = x + tl.load(b_ptr + i, mask)");
  return cat(kHead, pointers(recipe), ", ", sizes, ", BLOCK: tl.constexpr):\n", line("p = tl.program_id(0)"),
             line("i = tl.arange(0, BLOCK)"), line(first ? "off = i * N + p" : "off = p * N + i"),
             line(cat("mask = i < ", count)), loads(recipe, 0), keeps_input(recipe) ? line("r = x") : "",
             steps_in_triton(recipe.before), row_core(core, count), affine, steps_in_triton(recipe.after),
             line(reduces ? "tl.store(out_ptr + p, x)" : "tl.store(out_ptr + off, x, mask)"),
             module_with(recipe, {"M, N = x.shape",
                                  reduces ? cat("out = x.new_empty(", shape, ")") : "out = torch.empty_like(x)",
                                  cat("kernel[(", programs, ",)](", launch_tensors(recipe), ", ", sizes,
                                      ", triton.next_power_of_2(", count, "))")}));
}

std::string gemm_solution(const Recipe& recipe) {
  const Core& core = recipe.core;
  bool linear = core.op == "linear", by_n = linear || core.y_transposed;
  std::string a = core.x_transposed ? "ka * M + i" : "i * K + ka", b = by_n ? "j * K + kb" : "kb * N + j";
  std::string right = linear ? "w" : "y";
  std::string rows = core.x_transposed ? "K, M = x.shape" : "M, K = x.shape";
  std::string columns = linear ? "self.linear.out_features" : core.y_transposed ? "y.shape[0]" : "y.shape[1]";
  return cat(
      kHead, pointers(recipe), ", M, N, K):\n", line("r = tl.arange(0, 32)"),
      line("i = tl.program_id(0) * 32 + r[:, None]"), line("j = tl.program_id(1) * 32 + r[None, :]"),
      line("x = tl.zeros((32, 32), tl.float32)"), line("for k in range(0, K, 32):"), line("    ka = k + r[None, :]"),
      line("    kb = k + r[:, None]"), line(cat("    a = tl.load(x_ptr + ", a, ", (i < M) & (ka < K), 0.0)")),
      line(cat("    b = tl.load(", right, "_ptr + ", b, ", (kb < K) & (j < N), 0.0)")),
      line("    x = tl.dot(a, b, x, input_precision=\"ieee\")"),
      core.bias ? line("x = x + tl.load(b_ptr + j, j < N)") : "", line("off = i * N + j"),
      line("mask = (i < M) & (j < N)"), loads(recipe, linear ? 1 : 2), steps_in_triton(recipe.after),
      line("tl.store(out_ptr + off, x, mask)"),
      module_with(recipe,
                  {rows, "N = " + columns, "out = x.new_empty(M, N)",
                   cat("kernel[(triton.cdiv(M, 32), triton.cdiv(N, 32))](", launch_tensors(recipe), ", M, N, K)")}));
}

}  // namespace

std::string Recipe::solution() const {
  switch (family) {
    case Family::kElementwise:
      return elementwise_solution(*this);
    case Family::kGemm:
      return gemm_solution(*this);
    default:
      return row_solution(*this);
  }
}

}  // namespace tritonrl
