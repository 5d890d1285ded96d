// SPDX-License-Identifier: Apache-2.0
// Made-up findings, for tests that need verdicts and no verifier.
#pragma once

#include <string>
#include <vector>

#include "verify/verdict.h"

namespace tritonrl {

inline std::vector<Rule> all_rules() {
  std::vector<Rule> rules;
  for (const std::string& name : names_of<Rule>()) rules.push_back(named<Rule>(name).value());
  return rules;
}

// One of that outcome, of a rule that is told in the words alone where there is such a rule.
inline Finding made_up_finding(Outcome outcome, const std::string& words = "") {
  Finding found;
  for (Rule rule : all_rules()) {
    if (outcome_of(rule) != outcome) continue;
    bool plain = human_text(Finding(rule, "words")) == "words";
    if (found.passed() || plain) found = Finding(rule, words);
    if (plain) break;
  }
  return found;
}

// Lets a verdict end there, with nothing before.
inline void made_up_end(Verdict& verdict, Stage stage, Outcome outcome) {
  verdict.outcome = outcome;
  verdict.stopped_at = stage;
  verdict.stages = {{stage, 0, made_up_finding(outcome)}};
}

}  // namespace tritonrl
