// SPDX-License-Identifier: Apache-2.0
#include "base/process/build_paths.h"

namespace tritonrl {

const std::string& source_dir() {
  static const std::string path = TRITONRL_SOURCE_DIR;
  return path;
}

const std::string& build_dir() {
  static const std::string path = TRITONRL_BUILD_DIR;
  return path;
}

const std::string& python_program() {
  static const std::string path = TRITONRL_PYTHON;
  return path;
}

const std::string& deps_dir() {
  static const std::string path = TRITONRL_DEPS;
  return path;
}

const std::string& nvrtc_library() {
  static const std::string path = TRITONRL_NVRTC;
  return path;
}

}  // namespace tritonrl
