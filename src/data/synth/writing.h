// SPDX-License-Identifier: Apache-2.0
// Writing: how the people write the module of one task. Drawn apart from its graph, so that every operator is met in
// every hand: a policy that only ever read bare modules copies what it does not know, such as `super(Model, self)`,
// into its answer.
#pragma once

#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "data/synth/tensor_graph.h"

namespace tritonrl::graphs {

enum class WritingStyle { kAsPeople, kBare };
constexpr auto enum_names(WritingStyle) { return std::array{"as_people", "bare"}; }

struct Writing {
  // batch_size, BATCH_SIZE, B, the number itself, or `*input_shape` behind the batch.
  enum class Sizes { kLower, kUpper, kShort, kLiteral, kTuple };
  enum class Comments { kNone, kAbove, kBehind };
  // What docstrings say of the operators and shapes: what they are; nothing; or something else, as where code was
  // changed and its docstring was not. Whoever translates the module must read its code.
  enum class Docs { kTrue, kVague, kStale };
  enum class Layout { kGoogle, kSphinx, kNumpy, kLine };  // Of docstrings.
  enum class Container { kNone, kSequential, kBlock };  // Modules in a row: in nn.Sequential, or a class of their own.

  // As benchmarks and papers write: the usual names, arguments in the order of use and without default values,
  // "height, width = 32, 32" behind the class, every value x. The rest is in any hand.
  bool conventional = false;
  bool named_super = false, new_named_super = false;  // super(Model, self) in the source, super(ModelNew, self).
  bool empty_init = false, new_empty_init = false;    // An __init__ where nothing is to be kept.
  bool class_doc = false, init_doc = false, forward_doc = false, new_doc = false, input_docs = false;
  bool hints = false, new_hints = false;
  bool tensor_imported = false;   // `from torch import Tensor`, for hints.
  bool spare_functional = false;  // F is imported whether used or not.
  bool long_functional = false;   // torch.nn.functional.relu.
  bool nn_first = false, nn_from = false;
  bool constants_last = false;  // Behind the class.
  bool constants_comment = false;
  bool spatial_line = false;   // height, width = 32, 48.
  bool scalars_named = false;  // Hyper-parameters have a constant each; else get_init_inputs() has the numbers.
  bool defaults = false;       // Hyper-parameters may have default values, which get_init_inputs() may leave out.
  bool bound_inputs = false;   // get_inputs() gives every tensor a name first.
  bool wide = false;           // Two blank lines between definitions.
  bool own_last = false, numbers_last = false;  // In __init__: its own parameters, its numbers behind the modules.
  bool from_front = false;                      // The last of three dimensions is 2; else -1.
  bool listed_dims = false;                     // dim=[2, 3]; else dim=(2, 3).
  bool pools_kept = false;                      // The solution has the pools, too, and reads their windows.
  bool one_name = false, nested = false, one_line = false;
  double arguments = 0;  // Chance that a number becomes an argument of __init__.
  double listed = 0;     // Chance that what PyTorch takes anyway ("stride=1") is written.
  double modules = 0;    // Chance that an operator becomes a module.
  double forms = 0;      // Chance of another form than the usual one.
  Docs docs = Docs::kTrue;
  Layout layout = Layout::kGoogle;
  Comments comments = Comments::kNone;
  Container container = Container::kNone;
  Sizes sizes = Sizes::kLower;
};
Writing draw_writing(Rng rng);

// The graph with sizes called as people call them, by what they are used for: batch_size, in_features, height.
TensorGraph with_named_sizes(const TensorGraph& graph, const Writing& writing, Rng rng);
// Modules and parameters of the module's own called as people call them; now and then by a name that means nothing, so
// that a reader of the task must copy.
TensorGraph with_named_members(const TensorGraph& graph, const Writing& writing, Rng rng);
// A word that nobody has seen: "rolimu", "takes3".
std::string invented_name(Rng& rng);
// Sizes that share a line (Writing::spatial_line): the spatial ones of the first input that has some. Else empty.
std::vector<std::string> spatial_symbols(const TensorGraph& graph);
// The first node that multiplies matrices which are inputs both; null = none.
const Node* product_of_inputs(const TensorGraph& graph);
// The symbols in the order in which the inputs, then the modules, need them.
std::vector<std::string> symbols_in_order(const TensorGraph& graph);

// One way to write an operator. `text` is a template as Operator::torch; with `module`, the constructor that {self} is.
// "let norm = A in {x} / {own}" writes A in a line of its own and calls it norm.
// Besides the place holders of Operator::torch: {of}, the dimensions of a reduction as first arguments; {nn_reduction}.
struct Form {
  std::string text, module;
};
// All ways to write a node that mean the same; the first is the table's own.
std::vector<Form> forms_of(const TensorGraph& graph, const Node& node);
// What people call the number {a} or {b} of an operator: "negative_slope".
std::string scalar_name(const std::string& op, const std::string& key, Rng& rng);

// What PyTorch takes for it where nothing is said, "" = nothing.
std::string usual_scalar(const std::string& op, const std::string& key);

// "nn.Conv2d(a, b, 3, padding=1)" in its parts.
struct Call {
  std::string head;
  std::vector<std::string> arguments;
};
Call taken_apart(const std::string& text);

// A parameter of a constructor of torch.nn or of a pool of F. `usual`: its default value, "" = none.
struct CallParameter {
  std::string name, usual = "";
};
// In order; of "nn.Conv2d" or "F.max_pool2d". Empty where nothing is known of the callee.
const std::vector<CallParameter>& parameters_of(const std::string& callee);

// A whole word of `text` becomes another.
std::string replace_word(const std::string& text, const std::string& word, const std::string& by);

}  // namespace tritonrl::graphs
