// SPDX-License-Identifier: Apache-2.0
// Judge: the process that knows the answer. Owns the weights, the secret inputs, the float64 oracle and the comparison;
// runs no byte of a candidate. Starts replayers (one at work, one spare) and asks them.
//
// What it runs itself are traces of references: trusted code, in the task's own dtypes and in float64. A candidate's
// outputs come through the shared memory chunk by chunk and are compared as they come. Expected outputs never leave the
// process. On the processor there may be no replayers: then the verifier has candidates interpreted
// (verify/execute/interpret_executor.h), and asks for their inputs and about their outputs.
//
// Questions of the verifier (verify/execute/judge_slots.h), JSON over the Channel:
//
//   hello      {"memory_share": x, "replayers": bool, "memory_bytes": n on the processor, 0 = all}
//                                      -> {"name", "memory", "bandwidth", "gpu": trace/target_gpu.h}
//   measure    {"spec"}                -> {"noise": [[readings, ...], ...]}: computations against themselves
//   task       {"key"} + trace of the reference, kept until the memory is needed
//   candidate  {} + its bundle (trace/bundle.h); replaces the last one
//   run        {"task", "case", "values", "additional", "precision", "weight_seed", "noise_seed",
//               "input_seed", "earlier_seeds", "calls", "choices", "poison", "launches", "deadline_s"}
//                                      -> {"finding", "worst", "kept": it, or the reference, changes state,
//                                          "written": of a run without launches where the task only moves data, the
//                                          share of the elements that the launches would have written}, or for an
//                                         additional case that the reference
//                                         cannot do {"finding": a pass, "skipped": why}
//   inputs     as run, and {"parameters": [{"name", "shape", "dtype", "initial": tensor where __init__ was run}]}
//              + tensors
//                                      -> {"parameters": [[name, tensor]], "matched": [the reference's name of each, or
//                                         null], "inputs": [tensor or {"value"}], of all calls}
//                                         + tensors, or what run says of a case that the reference cannot do
//   compare    as run, and {"outputs": STRUCTURE of tensors, "changed": [inputs], "changed_parameters": [as matched],
//              "damage": n} + tensors
//                                      -> as run
//   time       {"task", "case", "precision", "weight_seed", "noise_seed", "input_seeds": [a, b], "spec", "first_place",
//   "again",
//               "deadline_s"}
//                                      -> the same, and {"readings", "floor_s"}, and unless it is done again
//                                         {"triton_share", "chosen", "reference_bytes", "candidate_bytes"}
//   lint       {"task", "case", "weight_seed", "noise_seed", "input_seeds": [a, b], "drops": bool, "deadline_s"}
//                                         (task_lint.h)
//                                      -> {"flags": [[flag, detail], ...], "drops_tried", "drops_impossible"}
//
// Every answer carries {"spent": [[part, seconds], ...]}: where its time went, and "short_of_memory" where more memory
// might have made it another one. Questions about a run may say "alone": nobody else works on the GPU, and what was not
// done for want of memory is tried again.
//
// A replayer that is gone without a word is replaced and the question asked again. The third time it is the candidate's
// doing, unless the replayer was killed from outside (for want of memory, say): that is the machine's.
//
// Tensors of inputs and compare are references into the message's payload (worker/PROTOCOL.md).
// "finding" is of verify/finding.h. A failure of a candidate's is its finding; a harness fault says that the reference
// or the machine failed, with {"reference_failed": outcome, "why"} that it was the former, and
// {"quarantined": reason} that this GPU is given up. {"ended": reason}: the reference spoilt this process's context,
// and this answer is its last.
#pragma once

#include <array>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "verify/judge/compare_device.h"
#include "verify/judge/spent.h"
#include "verify/judge/staging.h"
#include "verify/replay/tape.h"
#include "verify/sandbox/channel.h"
#include "verify/trace/bundle.h"

namespace tritonrl {

constexpr double kPatience = 60;  // Seconds, for questions that take no time at all.

struct JudgeFault {  // Ours, the machine's, or the reference's.
  std::string message;
  bool gpu_is_gone = false;
  std::optional<Outcome> reference = std::nullopt;  // How that failed.
};

struct WrittenElements;

struct ReplayerGone {
  bool killed = false;  // By SIGKILL: somebody else's doing, as no kernel can send it.
};

struct JudgeOptions {
  at::Device device = at::kCPU;
  std::string replay_program;
};

class Judge {
 public:
  Judge(Channel& verifier, JudgeOptions options);
  ~Judge();
  void serve();

 private:
  // A replayer at work or in reserve.
  struct Remote {
    std::unique_ptr<Channel> channel;
    bool greeted = false;
    bool has_candidate = false, had_candidates = false;  // The present one; any.
    std::string reference;                               // Key of the task whose reference it holds; "" = none.
    std::string inputs;  // Case and seed of the inputs that the candidate has and did not change; "" = none.
  };
  struct Parameter {
    std::string name;
    at::Tensor initial, value;  // As __init__ left it, and what is run with.
    int64_t id = -1;            // In the reference's trace.
    bool moved = false;         // These two differ.
  };
  struct Wanted {      // A candidate's parameter, or what its __init__ made besides.
    std::string name;  // "" = no parameter.
    std::vector<int64_t> shape;
    Dtype dtype = Dtype::kFloat32;
  };
  struct ReferenceCase {
    const CaseTrace* trace = nullptr;
    std::unique_ptr<Tape> own, exact;  // In its own dtypes; in float64.
    std::vector<Parameter> parameters;
    std::vector<size_t> mutated;                   // Inputs that the reference writes to.
    std::optional<std::set<int64_t>> changed;      // All values that its forward changes; found out on its first run.
    std::vector<std::array<at::Tensor, 2>> state;  // What forward may change of its own, and what it was before.
    bool exact_fits = true, disturbed_fits = true;
    int64_t input_seed = -1;  // Of the inputs below,
    std::string values;       // ... and what was made of them.
    std::vector<at::Tensor> inputs;
  };
  struct Task {
    TraceFile file;
    int64_t weight_seed = 0, noise_seed = 0;
    std::map<std::string, ReferenceCase> cases;
    std::string bytes;
  };
  struct Oracle {
    std::vector<Expectation> outputs;
    bool sound = true;  // The reference passes its own comparison.
    int64_t bytes = 0;
  };

  Json answer(const Json& question, std::string payload);
  Json hello(const Json& question);
  Json run(const Json& question);
  Json inputs(const Json& question, std::string_view tensors);
  Json compare(const Json& question, std::string_view tensors);
  Json time(const Json& question);
  Json lint(const Json& question);
  std::string lost_context() const;  // Why nothing runs in this process any more; "" = it does.
  Json twice(const Json& question, Json (Judge::*fn)(const Json&));
  Json measure(const Json& question);

  ReferenceCase& reference(const Json& question);
  void set_up(ReferenceCase& at, const Task& task, const CaseTrace& trace);
  void draw_inputs(ReferenceCase& at, int64_t seed, const std::string& values = "");
  void forget_inputs(ReferenceCase& at);
  void return_memory();
  std::vector<at::Tensor> run_reference(ReferenceCase& at, int64_t seed, bool exact);
  // What other honest computations of the reference give is allowed for in `made`.
  // `run` runs it, and the calls before it, with that seed of the device's random numbers. `another`: one more of them
  // is held against the rest.
  void allow_for_rounding(ReferenceCase& at, const std::function<std::vector<at::Tensor>(int64_t draws)>& run,
                          int64_t seed, Precision precision, bool another, Oracle* made);
  static void keep_state(ReferenceCase& at);
  static void restore_state(ReferenceCase& at);
  static bool keeps_state(const ReferenceCase& at);  // Does the reference's forward change what is its own?
  const Oracle& oracle(const Json& question, ReferenceCase& at);
  void forget_oracle(const std::string& key);
  void find_changes(ReferenceCase& at, int64_t seed);
  // Of the last call, after `earlier` ones.
  Oracle make_oracle(ReferenceCase& at, const std::vector<int64_t>& earlier, int64_t seed, Precision precision,
                     bool hold_against_itself);
  void make_room(const Json& question);  // Lets go of everything but the case at hand, here and in the replayer.
  void perturb(ReferenceCase& at, int64_t noise_seed);

  // Why the reference cannot do an additional case; "" when it can.
  std::string cannot_do(const Json& question);

  const CaseTrace& candidate_trace(const Json& question) const;
  void give_candidate();
  // The task's parameter that a candidate's stands for: of the same name, else (`initial` given) one that __init__ left
  // with the same bytes; null when there is none.
  static bool may_be(const Parameter& theirs, const Wanted& wanted);
  const Parameter* match(const Wanted& wanted, ReferenceCase& at, std::set<const Parameter*>* taken,
                         const at::Tensor* initial) const;
  void give_weights(const std::string& slot, const CaseTrace& trace, ReferenceCase& at, int64_t weight_seed);
  // As those of call number `call`.
  void give_inputs(const std::string& slot, const CaseTrace& trace, ReferenceCase& at, size_t call = 0);
  // To the candidate.
  void give_inputs_once(const CaseTrace& trace, ReferenceCase& at, int64_t seed, const std::string& values = "");
  // `whole` false: the first difference will do.
  // `written`: counts them; null = nobody asks.
  Comparison collect(const CaseTrace& trace, ReferenceCase& at, const Oracle& oracle, bool whole = true,
                     WrittenElements* written = nullptr);
  // The reply to run and compare; a "worst" is in it where there is one.
  static Json reply_to(const Comparison& comparison, const Finding& changed, int64_t damage);
  // What forward changed and should not have, a pass = nothing; what is the candidate's own goes to state_.
  Finding wrong_change(const CaseTrace& trace, const ReferenceCase& at, const std::vector<int64_t>& changed);

  std::unique_ptr<Remote> start_replayer();
  void greet();
  void replace_replayer();
  Json ask(Json question, const std::string& payload = "");
  void push(const std::string& slot, const std::string& name,
            const std::vector<std::pair<int64_t, at::Tensor>>& values);
  void pull(const std::string& name, const char* kind, int64_t key, int64_t bytes,
            const std::function<void(int64_t offset, const at::Tensor& chunk)>& fn);
  void sync();

  Channel& verifier_;
  JudgeOptions options_;
  std::unique_ptr<Staging> staging_;
  std::unique_ptr<Remote> at_work_, spare_;
  std::map<std::string, Task> tasks_;
  std::list<std::string> task_order_;
  std::map<std::string, Oracle> oracles_;
  std::list<std::string> oracle_order_;
  int64_t oracle_bytes_ = 0, oracle_cap_ = 0;
  std::string candidate_bytes_;
  std::optional<TraceFile> candidate_;
  std::map<int64_t, const Parameter*> matched_;     // Its parameters (ids in the last trace) that are the task's.
  std::map<std::string, std::set<int64_t>> state_;  // By case: values of its own that its forward changes.
  double until_ = 0;                                // Deadline of the question at hand.
  Spent spent_;                                     // On it.
  bool short_of_memory_ = false;                    // Met while it is answered.
  std::string reply_payload_;                       // Goes with its answer.
  double bandwidth_ = 0;
  int64_t cache_bytes_ = 0;
  int faults_ = 0;
};

bool same_bits(const at::Tensor& a, const at::Tensor& b);
[[noreturn]] void forged(const std::string& what);  // Throws ReplayFailure.
// A reply in which nothing is wrong.
Json passed(Json answer = Json::object());
// Row-major bytes as a tensor. Throws ReplayFailure when they are not of its size.
at::Tensor from_bytes(std::string_view bytes, const std::vector<int64_t>& shape, Dtype dtype, at::Device device);

}  // namespace tritonrl
