// SPDX-License-Identifier: Apache-2.0
// Random scripts of what befalls a candidate, and a model of what becomes of it; for tests.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/text.h"
#include "reward/reward.h"
#include "verify/verifier.h"

namespace tritonrl::stage_scripts {

// --- Scripts.

using Names = std::vector<std::string>;
using Script = std::map<std::string, std::string>;  // Point on the way -> what happens there; elsewhere all goes well.

// What each happening means to the stage that meets it.
inline const std::map<std::string, Outcome> kMeaning = {
    {"no code", Outcome::kNoCode},
    {"bad syntax", Outcome::kSyntaxError},
    {"library call", Outcome::kRuleBreak},
    {"same answer", Outcome::kRuleBreak},
    {"wrong", Outcome::kWrongOutput},
    {"nan", Outcome::kNotFinite},
    {"guard broken", Outcome::kWrongOutput},
    {"input changed", Outcome::kWrongOutput},
    {"crash", Outcome::kRuntimeError},
    {"killed", Outcome::kOutOfMemory},
    {"hangs", Outcome::kTimeout},
    {"flood", Outcome::kOutOfMemory},
    {"garbage", Outcome::kTampered},
    {"compile_error", Outcome::kCompileError},
    {"runtime_error", Outcome::kRuntimeError},
    {"unsupported", Outcome::kUnsupported},
    {"out_of_memory", Outcome::kOutOfMemory},
    {"rule_break", Outcome::kRuleBreak},
    {"lost once", Outcome::kHarnessFault},
    {"lost", Outcome::kHarnessFault},
    {"reference fails", Outcome::kHarnessFault},  // In an additional case: skipped.
};

inline const Names kJob = {"crash", "killed", "hangs", "flood", "garbage", "lost once", "lost"};
inline const Names kTold = {"compile_error", "runtime_error", "unsupported", "out_of_memory", "rule_break"};
inline const Names kRun = {"wrong", "nan", "guard broken", "input changed"};
inline const Names kOwnTrace = {"larger", "larger_in_ratio", "precision"};

Names operator+(Names a, const Names& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Every point of a candidate's way and what can happen there.
inline std::vector<std::pair<std::string, Names>> all_points() {
  std::vector<std::pair<std::string, Names>> out = {
      {"extract", {"no code"}},
      {"syntax", {"bad syntax"}},
      {"record", kJob + kTold + Names{"library call"}},
      {"compile full", kJob + Names{"compile_error"}},
      {"run without launches", {"same answer", "runtime_error", "crash", "lost once", "lost"}},
  };
  for (const char* input :
       {"full 0", "full 1", "tiny", "doubled", "reseeded", "larger", "larger_in_ratio", "precision"}) {
    out.push_back({cat("judge ", input), {"reference fails", "lost once", "lost"}});
  }
  out.push_back({"reference", {"reference fails", "lost once", "lost"}});
  for (const std::string& name : kOwnTrace) {
    out.push_back({cat("reference ", name), {"reference fails"}});
    out.push_back({cat("record ", name), kTold});
    out.push_back({cat("compile ", name), kJob + Names{"compile_error"}});
  }
  for (const char* run :
       {"tiny", "full 0", "full 0 again", "full 1", "doubled", "reseeded", "larger", "larger_in_ratio", "precision"}) {
    out.push_back({cat("run ", run), kJob + kTold + kRun});
  }
  return out;
}

struct Play {
  Script script;
  bool has_tiny = true, has_sizes = true;  // Of the task.
};

inline Play random_play(Rng& rng, int64_t happenings) {
  static const auto points = all_points();
  Play play;
  play.has_tiny = rng.below(4) > 0;
  play.has_sizes = rng.below(4) > 0;
  for (int64_t i = 0; i < happenings; ++i) {
    const auto& [point, possible] = rng.pick(points);
    play.script[point] = rng.pick(possible);
  }
  return play;
}

inline std::string print(const Play& play) {
  std::string out = cat("script, task ", play.has_tiny ? "with" : "without", " tiny sizes and ",
                        play.has_sizes ? "with" : "without", " named sizes:");
  for (const auto& [point, what] : play.script) out += cat("\n  ", point, ": ", what);
  return out + "\n";
}

// --- The model.

using Reported = std::vector<std::pair<std::string, std::string>>;  // Case, its outcome or "skipped".

struct Expected {
  Outcome outcome = Outcome::kPass;
  Stage stopped_at = Stage::kFullRun;
  Reported cases;
};

class Model {
 public:
  Model(Play play, bool multi_input, bool staged)
      : play_(std::move(play)), multi_input_(multi_input), staged_(staged) {}

  // A candidate that met a lost worker, and no failure before, has one more try.
  Expected verdict() {
    Expected first = attempt();
    return first.outcome == Outcome::kHarnessFault && lost_ ? attempt() : first;
  }

 private:
  // The first stage that fails decides; what is run after it can only add to the cases reported.
  inline Expected attempt() {
    Expected out;
    lost_ = false;
    for (Stage stage : {Stage::kExtract, Stage::kSyntax, Stage::kCompile, Stage::kTinyRun, Stage::kFullRun}) {
      Outcome now = stage == Stage::kExtract   ? at("extract")
                    : stage == Stage::kSyntax  ? at("syntax")
                    : stage == Stage::kCompile ? compile()
                    : stage == Stage::kTinyRun ? tiny_run(&out.cases)
                                               : full_run(&out.cases);
      if (now != Outcome::kPass && out.outcome == Outcome::kPass) out.outcome = now, out.stopped_at = stage;
      bool nothing_left = stage == Stage::kExtract || stage == Stage::kCompile || now == Outcome::kHarnessFault;
      if (now != Outcome::kPass && (staged_ || nothing_left)) break;
    }
    return out;
  }

  inline Outcome compile() {
    decided_.clear();
    Names recorded;
    if (at("reference") != Outcome::kPass) return Outcome::kHarnessFault;
    for (const std::string& name : multi_input_ ? kOwnTrace : Names{}) {
      bool there = (name == "precision" || play_.has_sizes) && !play_.script.count("reference " + name);
      bool wanted = name != "larger_in_ratio" || decided_.count("larger");
      if (there && wanted) {
        recorded.push_back(name);
      } else {
        decided_[name] = std::nullopt;
      }
    }
    if (Outcome whole = at("record"); whole != Outcome::kPass) return whole;
    for (const std::string& name : recorded) decide(name, at("record " + name));
    if (Outcome main = at("compile full"); main != Outcome::kPass) return main;
    for (const std::string& name : recorded) {
      Outcome compiled = decided_.count(name) ? Outcome::kPass : at("compile " + name);
      if (compiled == Outcome::kHarnessFault) return compiled;
      decide(name, compiled);
    }
    return Outcome::kPass;
  }

  inline Outcome tiny_run(Reported* cases) {
    Outcome out = at(play_.has_tiny ? "judge tiny" : "judge full 0");
    if (out == Outcome::kPass) out = at("run tiny");
    if (out == Outcome::kPass) {
      out = at("run without launches");  // Any other end there says that the launches matter.
      if (out != Outcome::kHarnessFault && out != Outcome::kRuleBreak) out = Outcome::kPass;
    }
    if (play_.has_tiny) cases->emplace_back("tiny", to_string(out));
    return out;
  }

  inline Outcome full_run(Reported* cases) {
    Outcome full = at("judge full 0");
    for (const char* next : {"run full 0", "run full 0 again", "judge full 1", "run full 1"}) {
      bool spared = multi_input_ && std::string(next) == "run full 0 again";  // Other cases run that trace, too.
      if (full == Outcome::kPass && !spared) full = at(next);
    }
    cases->emplace_back("full", to_string(full));
    if (full != Outcome::kPass || !multi_input_) return full;
    Outcome first = Outcome::kPass;
    for (const char* name : {"doubled", "reseeded", "larger", "larger_in_ratio", "precision"}) {
      std::optional<Outcome> now;
      if (auto it = decided_.find(name); it != decided_.end()) {
        now = it->second;
        if (!now && std::string(name) == "larger_in_ratio") continue;  // A stand-in is not missed.
      } else if (!impossible(name)) {
        now = at(cat("judge ", name));
        if (now == Outcome::kPass) now = at(cat("run ", name));
      }
      cases->emplace_back(name, now ? to_string(*now) : "skipped");
      if (now == Outcome::kHarnessFault) return *now;
      if (now && first == Outcome::kPass) first = *now;
    }
    return first;
  }

  inline Outcome at(const std::string& point) {
    auto it = play_.script.find(point);
    if (it == play_.script.end()) return Outcome::kPass;
    std::string what = it->second;
    if (what == "lost once") play_.script.erase(it);
    lost_ = lost_ || what == "lost" || what == "lost once";
    return kMeaning.at(what);
  }
  // The reference cannot do an additional case.
  bool impossible(const std::string& name) const {
    auto it = play_.script.find("judge " + name);
    return it != play_.script.end() && it->second == "reference fails";
  }
  // Nobody has to be written for another precision, but breaking the rules or hanging there counts.
  inline void decide(const std::string& name, Outcome failed) {
    if (failed == Outcome::kPass) return;
    static const std::set<Outcome> kCounts = {Outcome::kRuleBreak, Outcome::kTimeout, Outcome::kTampered};
    decided_[name] = name == "precision" && !kCounts.count(failed) ? std::nullopt : std::optional(failed);
  }
  Play play_;
  bool multi_input_, staged_;
  bool lost_ = false;
  std::map<std::string, std::optional<Outcome>> decided_;  // Before full_run; empty = skipped.
};

}  // namespace tritonrl::stage_scripts
