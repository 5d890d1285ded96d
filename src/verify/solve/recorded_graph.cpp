// SPDX-License-Identifier: Apache-2.0
#include "verify/solve/recorded_graph.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "verify/solve/graph_reader.h"
#include "verify/trace/call_rules.h"

namespace tritonrl {

using graphs::Dim;
using graphs::Node;
using graphs::Shape;
using graphs::Type;

namespace {

// "aten.add_.Tensor" -> "add.Tensor" and true.
std::pair<std::string, bool> plain_name(const std::string& op) {
  std::string name = op.rfind("aten.", 0) == 0 ? op.substr(5) : op;
  size_t dot = std::min(name.find('.'), name.size());
  bool in_place = dot > 1 && name[dot - 1] == '_' && name[dot - 2] != '_';
  std::string base = name.substr(0, dot - in_place), overload = name.substr(dot);
  return {base + (overload == ".default" ? "" : overload), in_place};
}

bool contiguous(const TraceValue& value) {
  int64_t expected = 1;
  for (size_t i = value.shape.size(); i-- > 0;) {
    if (value.shape[i] != 1 && value.stride[i] != expected) return false;
    expected *= value.shape[i];
  }
  return true;
}

// The only number of a tensor that is no parameter; nothing for other dtypes.
std::optional<double> only_number(const TraceParameter& parameter, Dtype dtype) {
  auto as = [&](auto number) -> std::optional<double> {
    if (parameter.initial.size() != sizeof number) return std::nullopt;
    std::memcpy(&number, parameter.initial.data(), sizeof number);
    return static_cast<double>(number);
  };
  if (dtype == Dtype::kFloat32) return as(float{});
  if (dtype == Dtype::kFloat64) return as(double{});
  if (dtype == Dtype::kInt64) return as(int64_t{});
  return std::nullopt;
}

}  // namespace

// --- The whole trace.

RecordedGraph GraphReader::read() {
  align();
  read_inputs();
  for (at_ = 0; first_[0] + at_ < trace().tape.size(); ++at_) read_step();
  read_outputs();
  drop_unread();
  return std::move(graph_);
}

// Nodes that no output needs; the arguments of forward() stay.
void GraphReader::drop_unread() {
  graphs::TensorGraph& graph = graph_.graph;
  std::vector<bool> needed(graph.nodes.size(), false);
  for (int id : graph.outputs) needed[static_cast<size_t>(id)] = true;
  for (int id : graph_.inputs) {
    if (id >= 0) needed[static_cast<size_t>(id)] = true;
  }
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    if (!needed[i]) continue;
    for (int operand : graph.nodes[i].operands) needed[static_cast<size_t>(operand)] = true;
  }
  std::vector<int> now(graph.nodes.size(), -1);
  std::vector<Node> kept;
  std::map<int, std::string> parameters;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!needed[i]) continue;
    now[i] = static_cast<int>(kept.size());
    kept.push_back(std::move(graph.nodes[i]));
    for (int& operand : kept.back().operands) operand = now[static_cast<size_t>(operand)];
    auto it = graph_.parameters.find(static_cast<int>(i));
    if (it != graph_.parameters.end()) parameters[now[i]] = it->second;
  }
  graph.nodes = std::move(kept);
  graph_.parameters = std::move(parameters);
  for (auto* ids : {&graph.outputs, &graph_.inputs}) {
    for (int& id : *ids) id = id < 0 ? id : now[static_cast<size_t>(id)];
  }
}

// Leaves out recordings that called something else; pairs the values of the others.
void GraphReader::align() {
  auto forward = [](const CaseTrace& trace) { return trace.init_steps + trace.input_steps; };
  auto alike = [&](const CaseTrace& other) {
    size_t count = trace().tape.size() - forward(trace());
    if (other.tape.size() - forward(other) != count || other.inputs.size() != trace().inputs.size() ||
        other.parameters.size() != trace().parameters.size()) {
      return false;
    }
    for (size_t i = 0; i < count; ++i) {
      const TraceStep &a = trace().tape[forward(trace()) + i], &b = other.tape[forward(other) + i];
      if (a.op != b.op || a.outs.size() != b.outs.size() || a.reads.size() != b.reads.size()) return false;
    }
    return true;
  };
  std::erase_if(traces_, [&](const CaseTrace* other) { return !alike(*other); });
  for (const CaseTrace* each : traces_) first_.push_back(forward(*each));
}

void GraphReader::pair(int64_t id, const std::vector<int64_t>& ids) {
  ids_[id] = ids;
  for (size_t r = 0; r < ids.size(); ++r) {
    if (value(id, r).shape.size() != value(id).shape.size()) throw Unfit{"sizes", "ranks differ between sizes"};
  }
}

void GraphReader::read_inputs() {
  for (size_t i = 0; i < trace().parameters.size(); ++i) {
    std::vector<int64_t> ids;
    for (const CaseTrace* each : traces_) ids.push_back(each->parameters[i].value);
    const TraceParameter& parameter = trace().parameters[i];
    pair(parameter.value, ids);
    given_storages_.insert(value(parameter.value).storage);
    if (parameter.name.rfind("constant:", 0) != 0) {
      weights_.emplace(parameter.value, parameter.name);
    } else if (auto number = only_number(parameter, value(parameter.value).dtype)) {
      constants_[parameter.value] = *number;
    }
  }
  for (size_t i = 0; i < trace().inputs.size(); ++i) {
    int64_t id = trace().inputs[i].value;
    if (id < 0) {
      const Json& literal = trace().inputs[i].literal;
      if (!literal.is_number()) throw Unfit{"inputs", cat("argument ", i + 1, " of forward() is no tensor")};
      graph_.inputs.push_back(-1);
      graph_.numbers[i] = literal.get<double>();
      continue;
    }
    std::vector<int64_t> ids;
    for (const CaseTrace* each : traces_) ids.push_back(each->inputs[i].value);
    pair(id, ids);
    given_storages_.insert(value(id).storage);
    nodes_[id] = given(id, "given", {});
    graph_.graph[nodes_[id]].kind = Node::Kind::kInput;
    graph_.inputs.push_back(nodes_[id]);
  }
  for (size_t i = first_[0]; i < trace().tape.size(); ++i) {
    read_.insert(trace().tape[i].reads.begin(), trace().tape[i].reads.end());
  }
  visit_leaves(trace().outputs, [&](int64_t id) { read_.insert(id); });
}

void GraphReader::read_step() {
  if (step().is_launch) throw Unfit{"operator", "a Triton launch"};
  bool in_place = false;
  std::tie(name_, in_place) = plain_name(step().op);
  for (size_t out = 0; out < step().outs.size(); ++out) {
    std::vector<int64_t> ids;
    for (size_t r = 0; r < traces_.size(); ++r) ids.push_back(step(r).outs[out]);
    pair(step().outs[out], ids);
  }
  read_call(*this);
  if (!in_place) return;
  int64_t own = step().outs.empty() ? -1 : step().outs[0];
  if (own < 0 || own != step().reads[0]) throw Unfit{"in_place", step().op};
  int64_t storage = value(own).storage;
  if (given_storages_.count(storage)) throw Unfit{"in_place", step().op + " changes what forward() was given"};
  for (const auto& [id, node] : nodes_) {
    if (id != own && value(id).storage == storage) stale_.insert(id);
  }
}

void GraphReader::read_outputs() {
  using Outputs = Nest<int64_t>;
  const Outputs& outputs = trace().outputs;
  std::vector<Outputs> leaves = outputs.kind == Outputs::Kind::kLeaf ? std::vector{outputs} : outputs.children;
  bool plain = outputs.kind == Outputs::Kind::kLeaf || outputs.kind == Outputs::Kind::kTuple;
  for (const Outputs& leaf : leaves) plain &= leaf.kind == Outputs::Kind::kLeaf;
  if (!plain || leaves.empty()) throw Unfit{"outputs", "forward() returns neither a tensor nor a tuple of tensors"};
  for (const Outputs& leaf : leaves) {
    auto it = nodes_.find(leaf.leaf);
    if (it == nodes_.end() || stale_.count(leaf.leaf))
      throw Unfit{"outputs", "forward() returns what it did not compute"};
    const Node& node = graph_.graph[it->second];
    if (node.kind != Node::Kind::kCompute) throw Unfit{"outputs", "forward() returns what it was given"};
    if (node.type != type_of(leaf.leaf)) throw Unfit{"dtype", "forward() returns truth values"};
    graph_.graph.outputs.push_back(it->second);
  }
}

// --- Arguments.

const TraceArg* GraphReader::argument_of(size_t recording, size_t at, const std::string& key) const {
  const TraceStep& call = step(recording);
  const TraceArg* found = at < call.args.size() ? &call.args[at] : nullptr;
  for (const auto& [name, arg] : call.kwargs) {
    if (!key.empty() && name == key) found = &arg;
  }
  return found == nullptr || found->kind == TraceArg::Kind::kNone ? nullptr : found;
}

std::optional<SizesOf> GraphReader::sizes_of(size_t at) const {
  SizesOf out;
  for (size_t r = 0; r < traces_.size(); ++r) {
    const TraceArg* arg = argument_of(r, at, "");
    if (arg == nullptr || (arg->kind != TraceArg::Kind::kInt && arg->kind != TraceArg::Kind::kBool))
      return std::nullopt;
    out.push_back(arg->number);
  }
  return out;
}

int64_t GraphReader::integer(size_t at, int64_t fallback, const std::string& key) const {
  std::optional<int64_t> out;
  for (size_t r = 0; r < traces_.size(); ++r) {
    const TraceArg* arg = argument_of(r, at, key);
    bool whole = arg != nullptr && (arg->kind == TraceArg::Kind::kInt || arg->kind == TraceArg::Kind::kBool);
    require(arg == nullptr || whole, "an argument is no integer");
    int64_t value = arg == nullptr ? fallback : arg->number;
    if (out && *out != value) throw Unfit{"sizes", "aten." + name_ + ": an argument differs between sizes"};
    out = value;
  }
  return *out;
}

double GraphReader::number(size_t at, double fallback, const std::string& key) const {
  std::optional<double> out;
  for (size_t r = 0; r < traces_.size(); ++r) {
    const TraceArg* arg = argument_of(r, at, key);
    double value = fallback;
    if (arg != nullptr) {
      require(arg->kind == TraceArg::Kind::kInt || arg->kind == TraceArg::Kind::kFloat ||
                  arg->kind == TraceArg::Kind::kBool,
              "an argument is no number");
      value = arg->kind == TraceArg::Kind::kFloat ? arg->real : static_cast<double>(arg->number);
    }
    if (out && *out != value) throw Unfit{"sizes", "aten." + name_ + ": a number differs between sizes"};
    out = value;
  }
  return *out;
}

std::vector<int64_t> GraphReader::integers(size_t at) const {
  std::optional<std::vector<int64_t>> out;
  for (size_t r = 0; r < traces_.size(); ++r) {
    const TraceArg* arg = argument_of(r, at, "");
    std::vector<int64_t> values;
    if (arg != nullptr && arg->kind == TraceArg::Kind::kInt) values = {arg->number};
    if (arg != nullptr && arg->kind == TraceArg::Kind::kList) {
      for (const TraceArg& item : arg->list) values.push_back(item.number);
    }
    if (out && *out != values) throw Unfit{"sizes", "aten." + name_ + ": an argument differs between sizes"};
    out = values;
  }
  return *out;
}

std::string GraphReader::text(size_t at, const std::string& fallback, const std::string& key) const {
  const TraceArg* arg = argument(at, key);
  return arg == nullptr ? fallback : arg->text;
}

// --- Tensors.

const TraceValue& GraphReader::value(int64_t id, size_t recording) const {
  int64_t own = recording == 0 ? id : ids_.at(id)[recording];
  return traces_[recording]->values.at(static_cast<size_t>(own));
}

Type GraphReader::type_of(int64_t id) const {
  switch (value(id).dtype) {
    case Dtype::kFloat32:
      return Type::kFloat32;
    case Dtype::kFloat16:
      return Type::kFloat16;
    case Dtype::kBfloat16:
      return Type::kBfloat16;
    case Dtype::kInt64:
      return Type::kInt64;
    case Dtype::kBool:
      return Type::kBool;
    default:
      throw Unfit{"dtype", to_string(value(id).dtype)};
  }
}

int GraphReader::given(int64_t id, const std::string& draw, Shape shape) {
  const TraceValue& tensor = value(id);
  if (!contiguous(tensor)) throw Unfit{"inputs", "an input or weight is not contiguous"};
  Node node;
  node.kind = Node::Kind::kParameter;
  node.type = type_of(id);
  node.draw = draw;
  node.shape = std::move(shape);
  if (node.shape.empty()) {
    for (size_t i = 0; i < tensor.shape.size(); ++i) {
      node.shape.push_back(symbol(sizes(id, i), i, tensor.shape.size(), weights_.count(id) > 0));
    }
  }
  int out = add(std::move(node));
  if (auto it = weights_.find(id); it != weights_.end()) graph_.parameters[out] = it->second;
  return out;
}

int GraphReader::tensor(const TraceArg& arg) {
  require(is_tensor(&arg), "an argument is no tensor");
  int64_t id = arg.number;
  if (stale_.count(id)) throw Unfit{"in_place", "a tensor is read whose memory was changed through another one"};
  if (auto it = nodes_.find(id); it != nodes_.end()) return it->second;
  if (auto it = constants_.find(id); it != constants_.end()) {
    Node node = compute("fill", {}, {it->second});
    return nodes_[id] = add(std::move(node));
  }
  if (!weights_.count(id))
    throw Unfit{"inputs", "forward() reads a tensor that is neither an argument nor a parameter"};
  return nodes_[id] = given(id, "given", {});
}

int GraphReader::tensor(size_t at) {
  const TraceArg* arg = argument(at);
  require(arg != nullptr, "a tensor is missing");
  return tensor(*arg);
}

int GraphReader::weight(size_t at, Shape shape) {
  require(has(at), "a weight is missing");
  int64_t id = argument(at)->number;
  if (!weights_.count(id) || stale_.count(id)) unfit("a weight is computed");
  return given(id, "", std::move(shape));
}

Dim GraphReader::weight_size(size_t at, size_t dim) {
  SizesOf size = operand_sizes(at, dim);
  return symbol(size, dim, 2, true);
}

int GraphReader::dim_of(int node, int64_t dim) const {
  int64_t out = dim < 0 ? dim + rank(node) : dim;
  require(out >= 0 && out < std::max(1, rank(node)), "a dimension that is not there");
  return static_cast<int>(out);
}

bool GraphReader::is_read(size_t out) const { return read_.count(step().outs.at(out)) > 0; }

Shape GraphReader::shape_of(int64_t id) {
  Shape out;
  for (size_t i = 0; i < value(id).shape.size(); ++i) out.push_back(dim(sizes(id, i)));
  return out;
}

Shape GraphReader::shape_of_result(size_t out) { return shape_of(step().outs.at(out)); }

// --- Nodes.

Node GraphReader::compute(const std::string& op, std::vector<int> operands, std::vector<double> numbers) const {
  Node node;
  node.op = graphs::find_operator(op);
  CHECK(node.op != nullptr) << "no operator " << op;
  node.operands = std::move(operands);
  node.numbers = std::move(numbers);
  node.type = node.operands.empty() ? Type::kFloat32 : graph_.graph[node.operands[0]].type;
  if (node.type == Type::kBool) node.type = Type::kFloat32;  // As numbers they are 0.0 and 1.0.
  return node;
}

int GraphReader::add(Node node) { return graph_.graph.add(std::move(node)); }

void GraphReader::result(Node node, size_t out) {
  node.shape = shape_of_result(out);
  node.type = type_of(step().outs.at(out));
  if (node.type == Type::kBool) node.type = Type::kFloat32;
  result_is(add(std::move(node)), out);
}

void GraphReader::result_is(int node, size_t out) {
  int64_t id = step().outs.at(out);
  Shape recorded = shape_of(id);
  require(recorded == shape(node), "a result of an unexpected shape");
  nodes_[id] = node;
  stale_.erase(id);
}

int GraphReader::pointwise(const std::string& op, std::vector<int> operands, std::vector<double> numbers) {
  Node node = compute(op, operands, std::move(numbers));
  for (int operand : operands) {
    Shape both;
    require(graphs::broadcast(node.shape, shape(operand), both), "shapes that do not go together");
    node.shape = both;
    if (graph_.graph[operand].type == Type::kFloat32) node.type = Type::kFloat32;
  }
  return add(std::move(node));
}

int GraphReader::viewed(int x, Shape wanted) {
  if (wanted == shape(x)) return x;
  bool ones = true;
  for (const Dim& dim : wanted) ones &= dim.is_one();
  require(ones || !graphs::view_groups(shape(x), wanted).empty(), "dimensions that do not divide");
  Node node = compute("view", {x});
  node.shape = std::move(wanted);
  return add(std::move(node));
}

RecordedGraph read_graph(const TraceFile& recorded) {
  CHECK(!recorded.cases.empty()) << "a trace without a case";
  std::vector<const CaseTrace*> traces;
  for (const CaseTrace& each : recorded.cases) traces.push_back(&each);
  try {
    return GraphReader(traces).read();
  } catch (const Unfit& unfit) {
    RecordedGraph out;
    out.kind = unfit.kind;
    out.problem = unfit.problem;
    return out;
  }
}

Computed computed_by(const TraceFile& recorded) {
  RecordedGraph graph = read_graph(recorded);
  if (graph.kind.empty()) {
    auto names = graphs::outline_operators(graph.graph);
    return {graphs::outline(graph.graph), {names.begin(), names.end()}};
  }
  const CaseTrace& trace = recorded.cases[0];
  std::multiset<std::string> calls;
  for (size_t i = trace.init_steps + trace.input_steps; i < trace.tape.size(); ++i) {
    if (!is_plumbing(trace.tape[i].op)) calls.insert(plain_name(trace.tape[i].op).first);
  }
  std::set<std::string> names;
  for (const std::string& call : calls) {
    std::string name = call.substr(0, call.find('.'));
    if (const graphs::Operator* known = graphs::find_operator(name)) {
      names.merge(graphs::outline_operators(*known));
    } else {
      names.insert(name);
    }
  }
  return {"calls:" + content_hash(join(std::vector<std::string>(calls.begin(), calls.end()), "\n")),
          {names.begin(), names.end()}};
}

}  // namespace tritonrl
