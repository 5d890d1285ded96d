// SPDX-License-Identifier: Apache-2.0
// Writes recordings to start fuzzing from into a folder: plan_seeds FOLDER.
#include <filesystem>
#include <fstream>

#include "verify/plan_writer.h"

int main(int argc, char** argv) {
  using namespace tritonrl;
  if (argc != 2) return 2;
  std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  auto write = [&](const std::string& name, const PlanFile& file) {
    std::ofstream(folder / name, std::ios::binary) << write_plan_file(file);
  };
  PlanFile sample = sample_plan_file();
  write("empty", PlanFile{});
  write("small", file_of({small_plan()}));
  write("two_cases", file_of({small_plan("full"), small_plan("tiny", {2})}));
  write("sample", sample);
  for (const Plan& plan : sample.cases) {  // One case at a time: smaller is faster.
    PlanFile one = sample;
    one.cases = {plan};
    write(plan.name, one);
  }
  sample.cases.clear();
  write("kernels", sample);
}
