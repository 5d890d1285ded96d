// SPDX-License-Identifier: Apache-2.0
// Writes traces and a bundle to start fuzzing from into a folder: trace_seeds FOLDER.
#include <filesystem>
#include <fstream>

#include "support/trace_writer.h"
#include "verify/trace/bundle.h"

int main(int argc, char** argv) {
  using namespace tritonrl;
  if (argc != 2) return 2;
  std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  auto write = [&](const std::string& name, const TraceFile& file) {
    std::ofstream(folder / name, std::ios::binary) << write_trace_file(file);
  };
  TraceFile sample = sample_trace_file();
  write("empty", TraceFile{});
  write("small", file_of({small_trace()}));
  write("two_cases", file_of({small_trace("full"), small_trace("tiny", {2})}));
  write("sample", sample);
  for (const CaseTrace& trace : sample.cases) {  // One case at a time: smaller is faster.
    TraceFile one = sample;
    one.cases = {trace};
    write(trace.name, one);
  }
  sample.cases.clear();
  write("kernels", sample);
  auto parsed = [](const TraceFile& file) {
    return *parse_trace_file(std::make_shared<const std::string>(write_trace_file(file))).value;
  };
  TraceFile one_cubin = file_of({});
  auto kernel = std::make_shared<const CompiledKernel>(CompiledKernel{parsed(one_cubin)});
  std::ofstream(folder / "bundle", std::ios::binary)
      << make_bundle(parsed(with_specs(file_of({small_trace()}))), {kernel});
}
