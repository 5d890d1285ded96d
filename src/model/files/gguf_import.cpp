// SPDX-License-Identifier: Apache-2.0
#include "model/files/gguf_import.h"

#include "base/error.h"
#include "base/files/json.h"
#include "base/process/subprocess.h"
#include "base/text.h"
#include "model/files/mapped_file.h"

namespace tritonrl {

ImportReport import_gguf(const std::filesystem::path& gguf, const std::filesystem::path& folder) {
  auto packages = unpacked_package("gguf");
  auto file = MappedFile::open(gguf);
  std::string hash = content_hash({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()});
  Subprocess python(python_command(
      "import_gguf.py", {"--packages", packages.string(), "--hash", hash, "--", gguf.string(), folder.string()}));
  Json said = Json::parse(python.read_all(), nullptr, false);
  if (said.is_object() && said.contains("error")) {
    throw Error(said.value("kind", "") == "usage" ? ErrorKind::kUsage : ErrorKind::kEnvironment,
                valid_utf8(said.value("error", "")), said.value("where", ""), said.value("hint", ""));
  }
  if (python.wait() != 0 || !said.is_object()) {
    throw environment_error("tools/import_gguf.py ended early", gguf.string(), "run tools/setup.sh");
  }
  return {said.at("tensors"), said.at("parameters"), said.at("vocabulary"), said.at("already_there")};
}

}  // namespace tritonrl
