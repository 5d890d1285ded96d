// SPDX-License-Identifier: Apache-2.0
// GraphReader: the state of read_graph() (recorded_graph.h), and what the rules for single operations need of it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "data/synth/operators.h"
#include "verify/solve/recorded_graph.h"

namespace tritonrl {

// Thrown by rules and caught by read_graph(): the trace is not one of a graph of ours.
struct Unfit {
  std::string kind, problem;
};

using SizesOf = std::vector<int64_t>;  // One thing in all recordings.

class GraphReader {
 public:
  explicit GraphReader(std::vector<const CaseTrace*> traces) : traces_(std::move(traces)) {}
  RecordedGraph read();

  // --- The operation that is being read.
  const std::string& name() const { return name_; }  // "max.dim"; without "aten." and ".default".
  [[noreturn]] void unfit(const std::string& why) const { throw Unfit{"form", "aten." + name_ + ": " + why}; }
  void require(bool condition, const std::string& why) const {
    if (!condition) unfit(why);
  }
  // Argument `at`, or the one called `key`; null where it has its default value.
  const TraceArg* argument(size_t at, const std::string& key = "") const { return argument_of(0, at, key); }
  bool is_tensor(const TraceArg* arg) const { return arg != nullptr && arg->kind == TraceArg::Kind::kTensor; }
  // The same in all recordings, or Unfit.
  int64_t integer(size_t at, int64_t fallback, const std::string& key = "") const;
  double number(size_t at, double fallback, const std::string& key = "") const;
  bool truth(size_t at, bool fallback, const std::string& key = "") const { return integer(at, fallback, key) != 0; }
  std::vector<int64_t> integers(size_t at) const;  // Of a list, or of one integer; empty where there is none.
  std::string text(size_t at, const std::string& fallback, const std::string& key = "") const;
  std::optional<SizesOf> sizes_of(size_t at) const;  // An integer that may differ; nothing where it is none.

  // --- Tensors.
  int tensor(size_t at);  // The node of argument `at`.
  int tensor(const TraceArg& arg);
  // A parameter seen with other dimensions, as a norm or a convolution takes it; Unfit when it is computed.
  int weight(size_t at, graphs::Shape shape = {});
  bool has(size_t at) const { return is_tensor(argument(at)); }  // Is argument `at` a tensor?
  graphs::Dim weight_size(size_t at, size_t dim);  // Of a weight, under a name where no other size is like it.
  const graphs::Shape& shape(int node) const { return graph_.graph[node].shape; }
  int rank(int node) const { return static_cast<int>(shape(node).size()); }
  int dim_of(int node, int64_t dim) const;  // Not negative.
  graphs::Shape shape_of_result(size_t out = 0);
  bool is_read(size_t out) const;  // Does anybody look at that result?
  int64_t results() const { return static_cast<int64_t>(step().outs.size()); }

  // --- Sizes.
  graphs::Dim dim(const SizesOf& sizes);  // A known dimension, or an expression in those.
  void learn(const graphs::Dim& dim, const SizesOf& sizes);
  void learn_result(size_t dim, const graphs::Dim& formula);  // The formula of a dimension of the first result.
  SizesOf result_sizes(size_t dim, size_t out = 0) const;
  SizesOf operand_sizes(size_t at, size_t dim) const;

  // --- Nodes.
  graphs::Node compute(const std::string& op, std::vector<int> operands, std::vector<double> numbers = {}) const;
  int add(graphs::Node node);                      // With its shape set.
  void result(graphs::Node node, size_t out = 0);  // Of the recorded shape.
  void result_is(int node, size_t out = 0);
  int pointwise(const std::string& op, std::vector<int> operands, std::vector<double> numbers = {});
  int viewed(int x, graphs::Shape shape);  // The same elements in another shape.
  graphs::TensorGraph& graph() { return graph_.graph; }
  size_t recordings() const { return traces_.size(); }

 private:
  const CaseTrace& trace() const { return *traces_[0]; }
  const TraceStep& step(size_t recording = 0) const { return traces_[recording]->tape[first_[recording] + at_]; }
  const TraceArg* argument_of(size_t recording, size_t at, const std::string& key) const;
  const TraceValue& value(int64_t id, size_t recording = 0) const;
  SizesOf sizes(int64_t id, size_t dim) const;
  graphs::Type type_of(int64_t id) const;
  graphs::Shape shape_of(int64_t id);
  void align();
  void pair(int64_t id, const std::vector<int64_t>& ids);
  void read_inputs();
  void read_outputs();
  void read_step();
  void drop_unread();
  int given(int64_t id, const std::string& draw, graphs::Shape shape);
  graphs::Dim symbol(const SizesOf& sizes, size_t dim, size_t rank, bool parameter);
  bool holds(const graphs::Dim& dim, const SizesOf& sizes) const;
  std::optional<graphs::Dim> expression(const SizesOf& sizes) const;

  std::vector<const CaseTrace*> traces_;
  std::vector<size_t> first_;  // Of forward(), on each tape.
  size_t at_ = 0;
  std::string name_;
  RecordedGraph graph_;
  std::map<int64_t, std::vector<int64_t>> ids_;  // A value of the first recording -> in each.
  std::map<int64_t, int> nodes_;                 // By value.
  std::set<int64_t> stale_, read_;               // Values that changed behind their back; that somebody reads.
  std::map<int64_t, std::string> weights_;       // Values that are parameters.
  std::set<int64_t> given_storages_;
  std::map<int64_t, double> constants_;  // Parameters of one number.
  std::vector<std::pair<SizesOf, graphs::Dim>> known_;
};

// Reads the operation that `reader` stands at. Throws Unfit.
void read_call(GraphReader& reader);

// Families of rules, one a file. By the operation's name; false = not one of the family.
bool read_pointwise(GraphReader& reader);
bool read_rows(GraphReader& reader);      // Reductions, softmax, norms, scans, losses.
bool read_products(GraphReader& reader);  // Matrix products, attention, convolutions, pools.
bool read_movement(GraphReader& reader);

// Pieces that several rules share: `op` along these dimensions.
int reduced(GraphReader& reader, const std::string& op, int x, std::vector<int> dims, bool keep);

}  // namespace tritonrl
