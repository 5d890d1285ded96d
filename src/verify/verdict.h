// SPDX-License-Identifier: Apache-2.0
// Verdict: everything that is known about one candidate after it went through the stages.
//
// Outcomes are a closed vocabulary (docs/verdicts.md has a row for each). kHarnessFault means *we* failed:
// what may be bad luck is tried once more; a fault never becomes a reward.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/enum_names.h"
#include "base/files/json.h"
#include "verify/execute/compare.h"
#include "verify/execute/timing_protocol.h"
#include "verify/finding.h"

namespace tritonrl {

enum class Stage { kExtract, kSyntax, kCompile, kTinyRun, kFullRun, kTime };
constexpr int kStageCount = 6;
constexpr auto enum_names(Stage) { return std::array{"extract", "syntax", "compile", "tiny_run", "full_run", "time"}; }

enum class Outcome {
  kPass,          // Went through this stage.
  kNoCode,        // The answer holds no complete fenced code block.
  kSyntaxError,   // The code is not Python.
  kRuleBreak,     // No Triton launch reaches the output, or forbidden library calls do the work.
  kCompileError,  // Import, construction, or Triton compilation failed.
  kRuntimeError,  // forward() or a kernel raised.
  kWrongOutput,   // Structure, shape, dtype or values differ from the reference.
  kNotFinite,     // NaN or infinity where the reference has none.
  kTimeout,       // A stage's deadline passed.
  kOutOfMemory,   // A memory cap was hit.
  kTampered,      // The sandboxed process sent something it cannot honestly have produced.
  kUnsupported,   // Honest perhaps, but not recordable or not runnable here.
  kHarnessFault,  // Our own failure.
};
constexpr int kOutcomeCount = 13;
constexpr auto enum_names(Outcome) {
  return std::array{"pass",          "no_code",      "syntax_error", "rule_break", "compile_error",
                    "runtime_error", "wrong_output", "not_finite",   "timeout",    "out_of_memory",
                    "tampered",      "unsupported",  "harness_fault"};
}

inline const char* to_string(Stage stage) { return name_of(stage); }
inline const char* to_string(Outcome outcome) { return name_of(outcome); }

struct StageResult {
  Stage stage = Stage::kExtract;
  double seconds = 0;                // Wall clock.
  Finding finding;                   // Why the candidate went no further; kPass = it did.
  std::optional<double> own_s = {};  // What its processes computed for (sandbox/own_time.h); empty = none was run.

  Outcome outcome() const { return finding.outcome(); }
};

// How one case (execute/case_source.h) went.
struct CaseResult {
  std::string name;
  Finding finding;              // Why it failed; kPass = it did not.
  std::optional<double> worst;  // Largest error in units of what is allowed, over all inputs; empty = not compared.
  std::optional<std::string> skipped;  // Why it was not run: the task has no such case, or its reference cannot do it.

  std::optional<Outcome> outcome() const { return skipped ? std::nullopt : std::optional(finding.outcome()); }
};

// Where correctness was decided.
enum class VerifyPath {
  kNone,         // Never ran.
  kInterpreter,  // Recorded launches walked through Triton's interpreter on the CPU, small shapes.
  kReplay,       // Cubins replayed on a GPU.
};
constexpr auto enum_names(VerifyPath) { return std::array{"none", "interpreter", "replay"}; }

struct Verdict {
  std::string candidate_id;
  std::string task_id;
  int level = 0;
  Outcome outcome = Outcome::kHarnessFault;  // Of the first stage that did not pass; kPass = verified correct.
  Stage stopped_at = Stage::kExtract;        // That stage, or the last one.
  std::vector<StageResult> stages;           // In the order they ran.
  std::vector<CaseResult> cases;             // Those that were looked at, in that order.
  VerifyPath path = VerifyPath::kNone;
  std::optional<Tolerance> tolerance;  // What its outputs were held to; empty = they were not compared.
  std::optional<double> speedup;       // Reference time / candidate time; empty = not measured.
  std::optional<TimingResult> timing;  // What that comes from.
  std::optional<double> triton_share;  // Of the candidate's device time; the rest is library calls.
  std::map<std::string, std::string>
      policies;                            // "strict", "mixed" -> what breaks it; "" = allowed. Empty = not looked at.
  std::vector<std::string> delegated_ops;  // Library operations the candidate called (qualified ATen names).
  std::optional<double> triton_compile_s;  // Of `compile`: what Triton's compiler took; 0 = all known.
  bool keeps_state = false;  // forward() keeps something from call to call: further calls were judged, too.
  std::vector<std::string> choices_not_run;  // Configurations of an autotuner that were run on no case.
  int64_t triton_launches = 0;               // Recorded launches in one forward call.
  std::vector<std::string> sandbox_missing;  // Protections this machine could not give; empty = full sandbox.
  std::string task_failure;  // Why the task's own reference fails, where that ended it (a harness fault): not in JSON.
  std::string code;          // The extracted code, "" when there was none.

  bool correct() const { return outcome == Outcome::kPass; }
  bool is_harness_fault() const { return outcome == Outcome::kHarnessFault; }
  // Did the candidate get through `stage`?
  bool passed(Stage stage) const;
  bool valid() const { return passed(Stage::kSyntax); }      // Has code that parses.
  bool compiled() const { return passed(Stage::kCompile); }  // Recorded, and every kernel compiled to a cubin.
  const Finding& finding() const;                            // Of that stage; kPass when it passed.
  std::string reason() const;  // The same for people, who may read secrets; "" when it passed.

  template <class Self, class V>
  static void json_fields(Self& self, V& v);
};

Json to_json(const Verdict& verdict);
// Throws Error (usage) for unknown outcome or stage names or missing fields.
Verdict verdict_from_json(const Json& json, const std::string& where);

}  // namespace tritonrl
