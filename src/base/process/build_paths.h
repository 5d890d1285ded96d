// SPDX-License-Identifier: Apache-2.0
// Folders this program was built in and from: it reads its worker, prompts and scripts there. Absolute paths are
// compiled into this file alone, so that every other one is the same in all clones and found in the compiler cache.
#pragma once

#include <string>

namespace tritonrl {

const std::string& source_dir();      // The clone. No slash at its end.
const std::string& build_dir();       // Holds the programs beside this one.
const std::string& python_program();  // Interpreter with the torch and triton that this program was linked against.
const std::string& deps_dir();        // What tools/setup.sh fetched: packages that are not installed lie in pkg/.
const std::string& nvrtc_library();   // A path, or a name for the loader to find.

}  // namespace tritonrl
