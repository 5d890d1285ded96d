// SPDX-License-Identifier: Apache-2.0
// TensorGraph: a synthesised task before it is text: a DAG of PyTorch operators over tensors of known shape and dtype.
//
// Sizes are symbols (module-level constants of the task) with a value at full and at tiny size. A dimension that an
// operator computes is an expression in them ("(H - 3) // 2 + 1"). Two dimensions are equal when their texts are: what
// is a valid graph at one size is valid at every size that meets the same divisibility.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/check.h"

namespace tritonrl::graphs {

enum class Type { kFloat32, kFloat16, kBfloat16, kInt64, kBool };  // The stream draws no kBool.
const char* torch_name(Type type);                                 // "torch.float16".
const char* short_name(Type type);                                 // "float16".
inline bool is_half(Type type) { return type == Type::kFloat16 || type == Type::kBfloat16; }

struct Dim {
  std::string text = "1";  // A symbol, a number, or an expression of symbols that is safe inside a product.
  int64_t full = 1, tiny = 1;
  bool is_one() const { return text == "1"; }
  bool operator==(const Dim& other) const { return text == other.text; }
};
using Shape = std::vector<Dim>;

Dim number(int64_t value);
Dim product(const Shape& dims);  // "(C * H * W)"; "1" of none.
Dim plus(const Dim& a, const Dim& b);
// (factor * size + offset) // divisor, safe inside a product: what a window leaves of a dimension.
Dim scaled_size(const Dim& size, int64_t factor, int64_t offset, int64_t divisor);
int64_t elements(const Shape& shape);        // At full size.
std::string shape_text(const Shape& shape);  // "N, C, H": arguments of torch.randn.
// Torch's broadcasting; false when the shapes do not go together.
bool broadcast(const Shape& a, const Shape& b, Shape& out);

// Neighbouring dimensions of a shape that become neighbouring ones of another shape of as many elements, with as few
// dimensions a group as can be; dimensions of 1 are in none. Empty when the shapes have no such groups.
struct ViewGroup {
  std::vector<size_t> from, to;
};
std::vector<ViewGroup> view_groups(const Shape& from, const Shape& to);

// What is known of a value's numbers: samples (all nodes' samples with the same index belong to the same draw of the
// inputs as long as operators are element-wise) and an interval that no draw should leave.
struct Values {
  std::vector<double> samples;
  double low = 0, high = 0;
  bool exact = false;  // An input as it came, perhaps moved: rounding cannot carry it over a jump.
};

struct Operator;

// How a pool or a convolution goes along one spatial dimension.
struct Window {
  int64_t kernel = 1, stride = 1, padding = 0, dilation = 1;
  int64_t output_padding = 0;  // Transposed convolutions.
  bool operator==(const Window&) const = default;
};

struct Node {
  enum class Kind { kInput, kParameter, kCompute };
  Kind kind = Kind::kCompute;
  const Operator* op = nullptr;         // Compute nodes.
  std::vector<int> operands;            // Parameters last.
  std::vector<double> numbers;          // Choice of Operator::attributes.
  std::vector<int> dims;                // Dimensions worked on, ascending and not negative; a permutation.
  std::map<std::string, int64_t> ints;  // "keepdim", "groups", "shift" ...
  std::vector<Window> windows;          // Pools and convolutions: one a spatial dimension.
  Shape shape;
  Type type = Type::kFloat32;
  Values values;
  std::string call;    // Compute nodes: PyTorch text where it is not Operator::torch.
  std::string draw;    // Inputs: the call that draws it, with {shape}. Parameters: its initial value, or "".
  std::string module;  // Compute nodes: the constructor of their module with {0} .. for module_dims, "" = none.
  Shape module_dims;
  std::string member;  // Parameters: "norm.weight". Compute nodes with a module: "norm".

  const std::string& torch() const;  // Template of the PyTorch text of a compute node.
  int64_t taps() const;              // Elements of the whole window.
  size_t unswept() const;            // Dimensions in front of those that windows go over: batch and channels.
};

struct TensorGraph {
  std::vector<Node> nodes;  // Operands before users.
  std::vector<int> outputs;
  std::map<std::string, Dim> symbols;  // Module-level constants by name.
  std::string title;                   // Name of a fusion, or "".

  const Node& operator[](int node) const { return nodes[static_cast<size_t>(node)]; }
  Node& operator[](int node) { return nodes[static_cast<size_t>(node)]; }
  int add(Node node) {
    nodes.push_back(std::move(node));
    return static_cast<int>(nodes.size()) - 1;
  }
  bool is_output(int node) const;
  std::vector<int> users(int node) const;
  int64_t compute_nodes() const;
  std::string name() const;  // "linear_relu_sum".
  // Content hash of operators, attributes, ranks, dtypes and broadcast patterns; sizes are not part of it.
  std::string hash() const;
};

// "outline:" and 32 hex digits: the hash of what two graphs have in common that differ in constants, sizes, ranks,
// dtypes, layout (views, permutations), in whether a layer has a bias, or in how an operator is written (x * sigmoid(x)
// or silu). Wider than hash(): for keeping the graphs of one set of tasks out of another.
std::string outline(const TensorGraph& graph);
// The operators that an outline is made of, by its names: "clamp" for hardtanh, "silu" for x * sigmoid(x), {"mul",
// "sigmoid"} for gate. Views, permutations, casts and constants are none.
std::set<std::string> outline_operators(const TensorGraph& graph);
std::set<std::string> outline_operators(const Operator& op);  // Of it alone.

}  // namespace tritonrl::graphs
