// SPDX-License-Identifier: Apache-2.0
// Tape: runs a CaseTrace natively. ATen steps go through the dispatcher, Triton launches through a Launcher.
//
//   Tape tape(file, trace, {.device = device, .launcher = &launcher});
//   tape.run_init();  tape.bind(trace.inputs[0].value, x);  tape.run_forward();
//   at::Tensor y = tape.value(output_id);
//
// Every result is held against what the recorder said of it: another shape or dtype means that the trace is not what it
// claims to be; another memory layout (a library chose its own) is copied into the recorded one, because launches carry
// the recorded strides. Works on any device LibTorch has; launches need CUDA.
//
// Failures are a ReplayFailure: they belong to the trace that is run. Thread rule: one thread.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "verify/finding.h"
#include "verify/trace/trace.h"
#include "verify/verdict.h"

namespace tritonrl {

// On a GPU or on the processor.
bool is_out_of_memory(const std::exception& error);

struct ReplayFailure {
  Finding finding;
  bool context_lost = false;  // The process must end: its CUDA context is of no further use.
};

// One argument of a launch, as the driver wants it.
struct LaunchArgument {
  bool is_tensor = false;
  at::Tensor tensor;
  const TraceArg* value = nullptr;  // Anything but a tensor.
  std::string type;                 // "*fp32", "i32", "constexpr", ...
};

// An argument and its type in a cubin's signature, those of a tuple one by one.
struct TypedArgument {
  const TraceArg* value = nullptr;
  std::string type;
};

// What a kernel takes of `arg`, in order: itself, or what a tuple is made of, however deep. Throws ReplayFailure where
// argument and type do not belong together and for a descriptor in a tuple.
std::vector<TypedArgument> taken_apart(const TraceArg& arg, const std::string& type);

class Launcher {
 public:
  virtual ~Launcher() = default;
  // `arguments` in the order of choice.args, tuples taken apart. Queues the launch; throws ReplayFailure.
  virtual void launch(const TraceCubin& cubin, const TraceChoice& choice,
                      const std::vector<LaunchArgument>& arguments) = 0;
  // Waits for all queued work; throws ReplayFailure when it failed.
  virtual void wait() = 0;
};

// Puts other numbers in place of those that a tape's steps compute with: what another computation of the same would
// give.
class TapeFilter {
 public:
  virtual ~TapeFilter() = default;
  // In place of an operand that `step` reads, and neither writes nor gives on as its result; `name`: the argument's in
  // the operator's schema.
  virtual at::Tensor operand(const TraceStep& step, const std::string& name, const at::Tensor& operand) = 0;
  // In place of what `step` gives.
  virtual at::Tensor result(const TraceStep& step, const at::Tensor& result) = 0;
};

struct TapeOptions {
  at::Device device = at::kCPU;
  bool in_double = false;        // The oracle: every floating value and dtype argument becomes float64.
  Launcher* launcher = nullptr;  // Without one, launches are a ReplayFailure (unsupported).
};

class Tape {
 public:
  // Resolves every operator. Borrows everything; throws ReplayFailure (unsupported) for an operator that is not there.
  Tape(const TraceFile& file, const CaseTrace& trace, TapeOptions options);

  // What takes the place of a value as soon as __init__ has done step `after`.
  struct Pin {
    int64_t value = -1;
    size_t after = 0;
    at::Tensor tensor;
  };
  // The sections of the tape. Random numbers come from the device's default generator.
  void run_init(std::vector<Pin> pins = {});
  void run_inputs() { run(trace_.init_steps, trace_.init_steps + trace_.input_steps, true); }
  // `launches` false leaves the Triton launches out.
  void run_forward(bool launches = true) { run(trace_.init_steps + trace_.input_steps, trace_.tape.size(), launches); }

  void bind(int64_t id, at::Tensor tensor);
  bool has(int64_t id) const { return values_[static_cast<size_t>(id)].defined(); }
  const at::Tensor& value(int64_t id) const;
  // In order of the trace's outputs' leaves.
  std::vector<at::Tensor> outputs() const;
  // Lets go of everything forward() made.
  void forget_forward();
  // Lets go of everything run_inputs() made.
  void forget_inputs();

  // Moves everything the tape holds to newly allocated memory; values that share a storage still do. What there is no
  // memory for stays where it is, and false comes back.
  bool relocate();

  // Waits after every launch, so that a fault is the fault of the launch it happened in, and names its source line.
  void set_careful(bool careful) { careful_ = careful; }
  // Which choice of a launch step (an autotuner's configurations) to take.
  void choose(size_t step, size_t choice) { choices_[step] = choice; }
  // Leaves one ATen step out: its first result is its first argument of that shape and dtype, what else it gives is
  // zeros. For the task lint. REQUIRES: can_drop(step).
  bool can_drop(size_t step) const { return pass_through(step) >= 0; }
  void drop(std::optional<size_t> step) { dropped_ = step; }
  // Borrowed; null = none.
  void set_filter(TapeFilter* filter) { filter_ = filter; }
  // Calls before(step) and after(step) around every step of forward (for shares of device time).
  void set_observer(std::function<void(size_t step, bool before)> observer) { observer_ = std::move(observer); }

  const CaseTrace& trace() const { return trace_; }

 private:
  struct Call {
    std::optional<c10::OperatorHandle> op;
    std::vector<const TraceArg*> args;  // By place in the schema; null = the default.
  };
  void run(size_t begin, size_t end, bool launches);
  void call(size_t step);
  void pass_on(size_t step);
  c10::IValue filtered(const TraceStep& step, const c10::Argument& argument, c10::IValue value);
  void filter_results(const TraceStep& step, const c10::FunctionSchema& schema, torch::jit::Stack* stack);
  int64_t pass_through(size_t step) const;  // The value that stands for the step's result; -1 = none can.
  void launch(size_t step);
  Call resolve(const TraceStep& step) const;
  c10::IValue argument(const TraceArg& arg, const c10::Type& type) const;
  void take(const Nest<int64_t>& where, const c10::IValue& result);
  void take_tensor(int64_t id, at::Tensor tensor);
  at::ScalarType real_dtype(at::ScalarType dtype) const;

  const TraceFile& file_;
  const CaseTrace& trace_;
  TapeOptions options_;
  std::vector<Call> calls_;
  std::vector<size_t> choices_;
  std::vector<size_t> last_use_;  // By value: the last step that reads it; SIZE_MAX = keep.
  std::vector<std::vector<int64_t>> dies_after_;
  std::vector<at::Tensor> values_;
  bool careful_ = false;
  std::optional<size_t> dropped_;
  TapeFilter* filter_ = nullptr;
  std::function<void(size_t, bool)> observer_;
};

void seed_device(at::Device device, uint64_t seed);  // The default generator, which tapes draw from.

at::ScalarType to_torch(Dtype dtype);
Dtype from_torch(at::ScalarType dtype);  // CHECK-fails for dtypes that traces do not have.

}  // namespace tritonrl
