// SPDX-License-Identifier: Apache-2.0
// ablate: a matrix of configs x seeds, run, resumed, compared.
#include <filesystem>
#include <iostream>

#include "app/ablate/ablation.h"
#include "app/commands/commands.h"
#include "base/log.h"
#include "base/text.h"

namespace tritonrl {

void add_ablate(CLI::App& app, Run& run) {
  auto* command = app.add_subcommand("ablate", "run a matrix of configs and seeds, and say what each axis does");
  struct AblateArguments {
    std::string matrix, only;
    std::vector<std::string> sets;
    int64_t jobs = 0;
    bool dry_run = false, report_only = false;
  };
  auto a = std::make_shared<AblateArguments>();
  command->add_option("matrix", a->matrix, "YAML file: base, axes, seeds (configs/ablate/extensions.yaml)")->required();
  command->add_option("--set", a->sets, "override one value in every cell")->take_all()->allow_extra_args(false);
  command->add_option("--only", a->only, "run only the cells whose name holds this text");
  command->add_option("--jobs", a->jobs, "cells at a time (default: one a GPU, or one)");
  command->add_flag("--dry-run", a->dry_run, "list the cells and stop");
  command->add_flag("--report-only", a->report_only, "run nothing; compare what is there");
  command->callback([=, &run] {
    run = [=] {
      Ablation ablation = load_ablation(a->matrix, a->sets);
      if (a->dry_run) {
        for (const AblationCell& cell : ablation.cells) {
          std::cout << cell.name << "  tritonrl train " << join(cell.files, " ");
          for (const std::string& set : cell.sets) std::cout << " --set '" << set << "'";
          std::cout << "\n";
        }
        return 0;
      }
      if (!a->report_only) run_cells(ablation, {std::filesystem::canonical("/proc/self/exe"), a->jobs, a->only});
      auto results = collect(ablation);
      auto effects = effects_of(ablation, results);
      write_ablation(ablation, results, effects);
      bool whole = true;
      for (const CellResult& result : results) {
        whole = whole && result.status == "done";
        if (result.status == "failed") log_warn(cat("cell ", result.cell->name, " has no results"));
      }
      for (const MeasuredEffect& one : effects) std::cout << one.sentence << "\n";
      std::cout << "results:  " << (ablation.folder / "ablation.json").string()
                << "\nreport:   " << (ablation.folder / "ablation.html").string() << "\n";
      return whole ? 0 : 1;
    };
  });
}

}  // namespace tritonrl
