// SPDX-License-Identifier: Apache-2.0
// data and model.
#include <iostream>

#include "app/commands.h"
#include "app/config.h"
#include "base/log.h"
#include "model/gguf_import.h"

namespace tritonrl {

void add_data(CLI::App& app, Run& run) {
  auto* data = app.add_subcommand("data", "make and inspect tasks");
  data->require_subcommand(1);
  add_data_synth(*data, run);
  auto* show = data->add_subcommand("show", "print one task of a task set, source and solution");
  auto file = std::make_shared<std::string>(), id = std::make_shared<std::string>();
  show->add_option("tasks", *file, "task set (JSON lines)")->required();
  show->add_option("id", *id, "task id")->required();
  show->callback([=, &run] {
    run = [=] {
      std::vector<std::string> ids;
      for (const Task& task : load_tasks(*file)) {
        if (task.id == *id) {
          std::cout << "# " << task.id << "  level " << task.level << "  " << task.name << "  " << task.graph_hash
                    << "\n\n"
                    << task.source << "\n";
          if (!task.solution.empty()) std::cout << "# ---- solution ----\n\n" << task.solution << "\n";
          return 0;
        }
        ids.push_back(task.id);
      }
      std::string close = nearest(*id, ids);
      throw usage_error("no task '" + *id + "'", *file, close.empty() ? "" : "did you mean '" + close + "'?");
    };
  });
}

void add_model(CLI::App& app, Run& run) {
  auto* model = app.add_subcommand("model", "bring models in");
  model->require_subcommand(1);
  auto* from_gguf = model->add_subcommand("import", "turn a SmolLM2 GGUF file into a Hugging Face folder");
  auto gguf = std::make_shared<std::string>(), out = std::make_shared<std::string>();
  from_gguf->add_option("gguf", *gguf, "GGUF file")->required();
  from_gguf->add_option("folder", *out, "folder to write")->required();
  from_gguf->callback([=, &run] {
    run = [=] {
      ImportReport report = import_gguf(*gguf, *out);
      std::cout << *out << ": " << report.tensors << " tensors, " << report.parameters << " parameters, vocabulary of "
                << report.vocabulary << (report.already_there ? " (was there already)\n" : "\n");
      return 0;
    };
  });
}

}  // namespace tritonrl
