// SPDX-License-Identifier: Apache-2.0
// ModuleFrame: what a solution keeps of its task's source: the constructor of Model and whatever that needs, so that
// ModelNew takes the same arguments and has the same state_dict().
//
// A method of a class is kept when the text that is kept mentions its name; `forward` is not, of any class. What is
// defined or imported at module level is kept when its name is mentioned.
#pragma once

#include <string>
#include <vector>

namespace tritonrl {

struct ModuleFrame {
  std::vector<std::string> imports;    // Lines, without torch and torch.nn.
  std::string definitions;             // Constants, functions and classes, two blank lines between them.
  std::string methods;                 // __init__ of ModelNew and what it calls, indented by four; "" = none.
  std::vector<std::string> arguments;  // Of forward(), without self.
  std::string problem;                 // Why there is no frame; "" = there is one.
};

// Of a source with a class Model. Never throws. Thread rule: any thread.
ModuleFrame module_frame(const std::string& source);

}  // namespace tritonrl
