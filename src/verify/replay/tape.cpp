// SPDX-License-Identifier: Apache-2.0
#include "verify/replay/tape.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/ScalarOps.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <new>

#include "base/check.h"
#include "base/text.h"

namespace tritonrl {
namespace {

constexpr size_t kKeep = SIZE_MAX;
constexpr at::ScalarType kTypes[kDtypeCount] = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kChar,
                                                at::kShort, at::kInt,    at::kLong, at::kByte,     at::kBool};

[[noreturn]] void fail(Rule rule, const std::string& words) { throw ReplayFailure{{rule, words}}; }

c10::Scalar scalar(const TraceArg& arg) {
  if (arg.kind == TraceArg::Kind::kFloat) return c10::Scalar(arg.real);
  if (arg.kind == TraceArg::Kind::kBool) return c10::Scalar(arg.number != 0);
  return c10::Scalar(arg.number);
}

at::Layout layout(const std::string& name) {
  if (name == "strided") return at::kStrided;
  fail(Rule::kNotReplayable, cat("tensors of layout ", name));
}

at::MemoryFormat memory_format(const std::string& name) {
  if (name == "contiguous_format") return at::MemoryFormat::Contiguous;
  if (name == "preserve_format") return at::MemoryFormat::Preserve;
  if (name == "channels_last") return at::MemoryFormat::ChannelsLast;
  if (name == "channels_last_3d") return at::MemoryFormat::ChannelsLast3d;
  fail(Rule::kForgedResult, cat("an unknown memory format ", name.substr(0, 40)));
}

// What an exception from LibTorch means for the candidate.
ReplayFailure from_exception(const std::exception& error, const std::string& op) {
  std::string text = error.what();
  text = text.substr(0, text.find("\nException raised from"));
  text = text.substr(0, 500);
  if (is_out_of_memory(error)) return {{Rule::kOutOfMemory, cat(op, ": ", text)}};
  bool lost = text.find("CUDA error") != std::string::npos && text.find("out of memory") == std::string::npos;
  return {{Rule::kOperatorFailed, cat(op, ": ", text)}, lost};
}

}  // namespace

bool is_out_of_memory(const std::exception& error) {
  return dynamic_cast<const c10::OutOfMemoryError*>(&error) || dynamic_cast<const std::bad_alloc*>(&error) ||
         std::strstr(error.what(), "DefaultCPUAllocator: ");
}

void seed_device(at::Device device, uint64_t seed) {
  auto generator = at::globalContext().defaultGenerator(device);
  std::lock_guard lock(generator.mutex());
  generator.set_current_seed(seed);
}

at::ScalarType to_torch(Dtype dtype) { return kTypes[static_cast<int>(dtype)]; }

Dtype from_torch(at::ScalarType dtype) {
  for (int i = 0; i < kDtypeCount; ++i) {
    if (kTypes[i] == dtype) return static_cast<Dtype>(i);
  }
  CHECK(false) << "a dtype that traces do not have: " << c10::toString(dtype);
  return Dtype::kFloat32;
}

Tape::Tape(const TraceFile& file, const CaseTrace& trace, TapeOptions options)
    : file_(file), trace_(trace), options_(options), choices_(trace.tape.size(), 0) {
  size_t count = trace.values.size(), forward = trace.init_steps + trace.input_steps;
  values_.resize(count);
  std::vector<size_t> last(count, 0);
  std::vector<bool> kept(count, false);
  for (size_t i = 0; i < trace.tape.size(); ++i) {
    const TraceStep& step = trace.tape[i];
    calls_.push_back(step.is_launch ? Call{} : resolve(step));
    for (int64_t id : step.reads) last[static_cast<size_t>(id)] = i;
    for (int64_t id : step.outs) {
      last[static_cast<size_t>(id)] = std::max(last[static_cast<size_t>(id)], i);
      if (i < forward) kept[static_cast<size_t>(id)] = true;
    }
  }
  for (const TraceInput& input : trace.inputs) {
    if (input.value >= 0) kept[static_cast<size_t>(input.value)] = true;
  }
  for (const TraceParameter& parameter : trace.parameters) kept[static_cast<size_t>(parameter.value)] = true;
  for_each_leaf(trace.outputs, [&](int64_t id, const std::string&) { kept[static_cast<size_t>(id)] = true; });
  dies_after_.resize(trace.tape.size());
  last_use_.assign(count, kKeep);
  for (size_t id = 0; id < count && !trace.tape.empty(); ++id) {
    if (kept[id]) continue;
    last_use_[id] = last[id];
    dies_after_[last[id]].push_back(static_cast<int64_t>(id));
  }
}

Tape::Call Tape::resolve(const TraceStep& step) const {
  auto parts = split(step.op, '.');
  if (parts.size() != 3) fail(Rule::kForgedResult, cat("a malformed operator ", step.op.substr(0, 80)));
  std::string name = cat(parts[0], "::", parts[1]), overload = parts[2] == "default" ? "" : parts[2];
  Call call;
  call.op = c10::Dispatcher::singleton().findSchema({name, overload});
  if (!call.op) fail(Rule::kNotReplayable, cat("operator ", step.op.substr(0, 80), " is not known here"));
  const auto& schema = call.op->schema();
  const auto& arguments = schema.arguments();
  call.args.assign(arguments.size(), nullptr);
  if (step.args.size() > arguments.size()) fail(Rule::kForgedResult, cat(step.op, " has too many arguments"));
  for (size_t i = 0; i < step.args.size(); ++i) call.args[i] = &step.args[i];
  for (const auto& [key, value] : step.kwargs) {
    auto index = schema.argumentIndexWithName(key);
    if (!index || call.args[static_cast<size_t>(*index)]) {
      fail(Rule::kForgedResult, cat(step.op, " has no argument ", key.substr(0, 40)));
    }
    call.args[static_cast<size_t>(*index)] = &value;
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!call.args[i] && !arguments[i].default_value()) {
      fail(Rule::kForgedResult, cat(step.op, " lacks argument ", arguments[i].name()));
    }
  }
  return call;
}

at::ScalarType Tape::real_dtype(at::ScalarType dtype) const {
  return options_.in_double && at::isFloatingType(dtype) ? at::kDouble : dtype;
}

c10::IValue Tape::argument(const TraceArg& arg, const c10::Type& type) const {
  using Kind = TraceArg::Kind;
  if (arg.kind == Kind::kNone) return {};
  if (type.kind() == c10::TypeKind::OptionalType) {
    return argument(arg, *type.expectRef<c10::OptionalType>().getElementType());
  }
  switch (arg.kind) {
    case Kind::kTensor:
      return value(arg.number);
    case Kind::kInt:
    case Kind::kFloat:
    case Kind::kBool:
      if (type.kind() == c10::TypeKind::TensorType) {  // `x / 2.0` is div.Tensor: promotes as a Python number does.
        at::Tensor wrapped = c10::scalar_to_tensor(scalar(arg));
        wrapped.unsafeGetTensorImpl()->set_wrapped_number(true);
        return wrapped;
      }
      if (type.kind() == c10::TypeKind::FloatType) return scalar(arg).toDouble();
      if (type.kind() == c10::TypeKind::BoolType) return scalar(arg).toBool();
      if (type.kind() == c10::TypeKind::ListType) {  // int[2] stride=1.
        c10::List<int64_t> list;
        list.push_back(arg.number);
        return list;
      }
      if (arg.kind == Kind::kFloat) return arg.real;
      if (arg.kind == Kind::kBool) return arg.number != 0;
      return arg.number;
    case Kind::kText:
      return arg.text;
    case Kind::kDtype:
      return static_cast<int64_t>(real_dtype(to_torch(static_cast<Dtype>(arg.number))));
    case Kind::kDevice:
      return arg.number == 0 ? at::Device(at::kCPU) : options_.device;
    case Kind::kLayout:
      return static_cast<int64_t>(layout(arg.text));
    case Kind::kMemoryFormat:
      return static_cast<int64_t>(memory_format(arg.text));
    case Kind::kList: {
      if (type.kind() != c10::TypeKind::ListType) break;
      const c10::Type& element = *type.expectRef<c10::ListType>().getElementType();
      if (element.kind() == c10::TypeKind::TensorType) {
        c10::List<at::Tensor> list;
        for (const TraceArg& item : arg.list) list.push_back(argument(item, element).toTensor());
        return list;
      }
      if (element.kind() == c10::TypeKind::OptionalType) {
        c10::List<std::optional<at::Tensor>> list;
        for (const TraceArg& item : arg.list) {
          c10::IValue one = argument(item, element);
          list.push_back(one.isNone() ? std::nullopt : std::optional<at::Tensor>(one.toTensor()));
        }
        return list;
      }
      if (element.kind() == c10::TypeKind::FloatType) {
        c10::List<double> list;
        for (const TraceArg& item : arg.list) list.push_back(scalar(item).toDouble());
        return list;
      }
      if (element.kind() == c10::TypeKind::BoolType) {
        c10::List<bool> list;
        for (const TraceArg& item : arg.list) list.push_back(item.number != 0);
        return list;
      }
      if (element.kind() == c10::TypeKind::NumberType) {
        c10::List<at::Scalar> list;
        for (const TraceArg& item : arg.list) list.push_back(scalar(item));
        return list;
      }
      c10::List<int64_t> list;
      for (const TraceArg& item : arg.list) {
        if (item.kind != Kind::kInt && item.kind != Kind::kBool) {
          fail(Rule::kForgedResult, "a list of integers with something else in it");
        }
        list.push_back(item.number);
      }
      return list;
    }
    default:
      break;
  }
  fail(Rule::kForgedResult, "an argument of a kind that its operator does not take");
}

void Tape::bind(int64_t id, at::Tensor tensor) { values_.at(static_cast<size_t>(id)) = std::move(tensor); }

const at::Tensor& Tape::value(int64_t id) const {
  const at::Tensor& tensor = values_.at(static_cast<size_t>(id));
  if (!tensor.defined()) fail(Rule::kForgedResult, "a value is used that was never made");
  return tensor;
}

std::vector<at::Tensor> Tape::outputs() const {
  std::vector<at::Tensor> out;
  for_each_leaf(trace_.outputs, [&](int64_t id, const std::string&) { out.push_back(value(id)); });
  return out;
}

void Tape::forget_forward() {
  for (size_t i = trace_.init_steps + trace_.input_steps; i < trace_.tape.size(); ++i) {
    for (int64_t id : trace_.tape[i].outs) {
      // In-place results are values of an earlier section.
      bool earlier = false;
      for (int64_t read : trace_.tape[i].reads) earlier |= read == id;
      if (!earlier) values_[static_cast<size_t>(id)] = at::Tensor();
    }
  }
}

void Tape::forget_inputs() {
  for (size_t i = trace_.init_steps; i < trace_.init_steps + trace_.input_steps; ++i) {
    for (int64_t id : trace_.tape[i].outs) values_[static_cast<size_t>(id)] = at::Tensor();
  }
}

bool Tape::relocate() {
  at::NoGradGuard no_grad;
  std::map<const c10::StorageImpl*, std::vector<size_t>> shared;
  for (size_t id = 0; id < values_.size(); ++id) {
    if (values_[id].defined() && values_[id].storage().nbytes() > 0) {
      shared[values_[id].storage().unsafeGetStorageImpl()].push_back(id);
    }
  }
  for (const auto& [storage, ids] : shared) {
    const at::Tensor& one = values_[ids[0]];
    auto bytes = static_cast<int64_t>(one.storage().nbytes());
    auto as_bytes = [bytes](const at::Tensor& tensor) {
      return at::empty({0}, tensor.options().dtype(at::kByte)).set_(tensor.storage(), 0, {bytes}, {1});
    };
    at::Tensor moved;
    try {
      moved = at::empty({bytes}, one.options().dtype(at::kByte));
      moved.copy_(as_bytes(one));
    } catch (const c10::OutOfMemoryError&) {
      return false;
    }
    for (size_t id : ids) {
      at::Tensor& value = values_[id];
      value = at::empty({0}, value.options())
                  .set_(moved.storage(), value.storage_offset(), value.sizes().vec(), value.strides().vec());
    }
  }
  return true;
}

void Tape::run_init(std::vector<Pin> pins) {
  at::NoGradGuard no_grad;
  std::ranges::stable_sort(pins, {}, &Pin::after);
  size_t done = 0;
  for (const Pin& pin : pins) {
    size_t until = std::min(pin.after + 1, trace_.init_steps);
    run(done, std::max(done, until), true);
    done = std::max(done, until);
    at::Tensor target = value(pin.value);
    target.copy_(pin.tensor);
  }
  run(done, trace_.init_steps, true);
}

void Tape::run(size_t begin, size_t end, bool launches) {
  at::NoGradGuard no_grad;
  for (size_t i = begin; i < end; ++i) {
    const TraceStep& step = trace_.tape[i];
    if (observer_) observer_(i, true);
    if (dropped_ == i) {
      pass_on(i);
    } else if (!step.is_launch) {
      call(i);
    } else if (launches) {
      launch(i);
    }
    if (observer_) observer_(i, false);
    for (int64_t id : dies_after_[i]) values_[static_cast<size_t>(id)] = at::Tensor();
  }
}

int64_t Tape::pass_through(size_t index) const {
  const TraceStep& step = trace_.tape[index];
  if (step.is_launch || step.outs.empty()) return -1;
  const TraceValue& out = trace_.values[static_cast<size_t>(step.outs[0])];
  for (int64_t id : step.reads) {
    const TraceValue& in = trace_.values[static_cast<size_t>(id)];
    if (in.shape == out.shape && in.dtype == out.dtype) return id;
  }
  return -1;
}

void Tape::pass_on(size_t index) {
  const TraceStep& step = trace_.tape[index];
  at::Tensor in = value(pass_through(index));
  for (size_t i = 0; i < step.outs.size(); ++i) {
    int64_t id = step.outs[i];
    if (std::count(step.reads.begin(), step.reads.end(), id) > 0) continue;  // In place: as it was.
    const TraceValue& said = trace_.values[static_cast<size_t>(id)];
    auto options = in.options().dtype(real_dtype(to_torch(said.dtype)));
    take_tensor(id, i == 0 ? in.clone() : at::zeros(said.shape, options));
  }
}

c10::IValue Tape::filtered(const TraceStep& step, const c10::Argument& argument, c10::IValue value) {
  if (argument.alias_info()) return value;
  if (value.isTensor() && value.toTensor().defined()) {
    return filter_->operand(step, argument.name(), value.toTensor());
  }
  if (!value.isTensorList()) return value;
  c10::List<at::Tensor> list;
  for (const at::Tensor& one : value.toTensorVector()) list.push_back(filter_->operand(step, argument.name(), one));
  return list;
}

void Tape::filter_results(const TraceStep& step, const c10::FunctionSchema& schema, torch::jit::Stack* stack) {
  for (size_t i = 0; i < stack->size() && i < schema.returns().size(); ++i) {
    c10::IValue& value = (*stack)[i];
    const auto* alias = schema.returns()[i].alias_info();
    if (!value.isTensor() || !value.toTensor().defined() || (alias && !alias->isWrite())) continue;
    at::Tensor before = value.toTensor(), after = filter_->result(step, before);
    if (after.is_same(before)) continue;
    alias ? void(before.copy_(after)) : void(value = after);
  }
}

void Tape::call(size_t index) {
  const TraceStep& step = trace_.tape[index];
  const Call& call = calls_[index];
  const auto& arguments = call.op->schema().arguments();
  torch::jit::Stack stack;
  stack.reserve(arguments.size());
  try {
    for (size_t i = 0; i < arguments.size(); ++i) {
      stack.push_back(call.args[i] ? argument(*call.args[i], *arguments[i].type()) : *arguments[i].default_value());
      if (filter_) stack.back() = filtered(step, arguments[i], std::move(stack.back()));
    }
    call.op->callBoxed(stack);
    if (filter_) filter_results(step, call.op->schema(), &stack);
  } catch (const ReplayFailure&) {
    throw;
  } catch (const std::exception& error) {
    throw from_exception(error, step.op);
  }
  if (stack.empty()) {
    if (!step.outs.empty()) fail(Rule::kForgedResult, cat(step.op, " gives no result"));
    return;
  }
  if (stack.size() == 1) return take(step.result, stack[0]);
  if (step.result.children.size() != stack.size()) fail(Rule::kForgedResult, cat(step.op, " gives other results"));
  for (size_t i = 0; i < stack.size(); ++i) take(step.result.children[i], stack[i]);
}

void Tape::take(const Nest<int64_t>& where, const c10::IValue& result) {
  if (where.kind == Nest<int64_t>::Kind::kLeaf) {
    if (!result.isTensor()) fail(Rule::kForgedResult, "a step gives something else than recorded");
    return take_tensor(where.leaf, result.toTensor());
  }
  if (where.children.empty()) return;
  if (!result.isTensorList() || result.toTensorVector().size() != where.children.size()) {
    fail(Rule::kForgedResult, "a step gives something else than recorded");
  }
  auto tensors = result.toTensorVector();
  for (size_t i = 0; i < tensors.size(); ++i) take(where.children[i], tensors[i]);
}

void Tape::take_tensor(int64_t id, at::Tensor tensor) {
  const TraceValue& said = trace_.values.at(static_cast<size_t>(id));
  if (!tensor.defined()) return;
  at::ScalarType dtype = real_dtype(to_torch(said.dtype));
  if (tensor.sizes() != at::IntArrayRef(said.shape)) {
    fail(Rule::kForgedResult, cat("a step gives shape ", dims_text(tensor.sizes().vec()), " where ",
                                  dims_text(said.shape), " was recorded"));
  }
  if (tensor.scalar_type() != dtype) {
    if (!options_.in_double) {
      fail(Rule::kForgedResult, cat("a step gives ", c10::toString(tensor.scalar_type()), " where ",
                                    to_string(said.dtype), " was recorded"));
    }
  }
  bool same_layout = true;
  for (size_t d = 0; d < said.shape.size(); ++d) {
    same_layout &= said.shape[d] <= 1 || tensor.stride(static_cast<int64_t>(d)) == said.stride[d];
  }
  if (!same_layout && tensor.numel() > 0) {
    at::Tensor moved = at::empty_strided(said.shape, said.stride, tensor.options());
    moved.copy_(tensor);
    tensor = moved;
  }
  values_[static_cast<size_t>(id)] = std::move(tensor);
}

void Tape::launch(size_t index) {
  const TraceStep& step = trace_.tape[index];
  if (!options_.launcher || options_.in_double) fail(Rule::kNotReplayable, "Triton launches need a GPU");
  const TraceChoice& choice = step.choices.at(choices_[index]);
  if (choice.cubin < 0) fail(Rule::kForgedResult, "a launch without a cubin");
  const TraceCubin& cubin = file_.cubins[static_cast<size_t>(choice.cubin)];
  try {
    if (choice.args.size() != cubin.signature.size()) {
      fail(Rule::kForgedResult, "a launch has other arguments than its kernel");
    }
    std::vector<LaunchArgument> arguments;
    for (size_t i = 0; i < choice.args.size(); ++i) {
      for (TypedArgument& each : taken_apart(choice.args[i].second, cubin.signature[i])) {
        const TraceArg::Kind kind = each.value->kind;
        LaunchArgument one{kind == TraceArg::Kind::kTensor || kind == TraceArg::Kind::kDescriptor,
                           {},
                           each.value,
                           std::move(each.type)};
        if (one.is_tensor) one.tensor = value(each.value->number);
        arguments.push_back(std::move(one));
      }
    }
    options_.launcher->launch(cubin, choice, arguments);
    if (careful_) options_.launcher->wait();
  } catch (ReplayFailure& failure) {
    failure.finding.told.kernel = file_.kernels[static_cast<size_t>(step.kernel)].name;
    failure.finding.told.line = std::max<int64_t>(step.line, 0);
    throw;
  }
}

std::vector<TypedArgument> taken_apart(const TraceArg& arg, const std::string& type) {
  if (type.empty() || type[0] != '(') return {{&arg, type}};
  if (type.back() != ')' || arg.kind != TraceArg::Kind::kList) {
    fail(Rule::kForgedResult, "a tuple where a kernel takes none, or the other way round");
  }
  std::vector<TypedArgument> out;
  size_t next = 0, begin = 1;
  int depth = 0;
  for (size_t i = 1; i < type.size(); ++i) {
    const bool last = i + 1 == type.size();
    if (!last && (type[i] != ';' || depth > 0)) {
      depth += type[i] == '(' ? 1 : type[i] == ')' ? -1 : 0;
      continue;
    }
    if (last && i == begin && next == 0) break;  // An empty tuple.
    const std::string part = type.substr(begin, i - begin);
    if (next == arg.list.size()) fail(Rule::kForgedResult, "a tuple that is shorter than its kernel's");
    if (part.rfind("tensordesc", 0) == 0) fail(Rule::kNotReplayable, "a descriptor in a tuple");
    for (TypedArgument& each : taken_apart(arg.list[next++], part)) out.push_back(std::move(each));
    begin = i + 1;
  }
  if (next != arg.list.size()) fail(Rule::kForgedResult, "a tuple that is longer than its kernel's");
  return out;
}

}  // namespace tritonrl
