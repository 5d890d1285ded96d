// SPDX-License-Identifier: Apache-2.0
// Writes recordings and a bundle to start fuzzing from into a folder: plan_seeds FOLDER.
#include <filesystem>
#include <fstream>

#include "verify/bundle.h"
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
  auto parsed = [](const PlanFile& file) {
    return *parse_plan_file(std::make_shared<const std::string>(write_plan_file(file))).value;
  };
  PlanFile one_cubin = file_of({});
  auto kernel = std::make_shared<const CompiledKernel>(CompiledKernel{parsed(one_cubin)});
  std::ofstream(folder / "bundle", std::ios::binary)
      << make_bundle(parsed(with_specs(file_of({small_plan()}))), {kernel});
}
