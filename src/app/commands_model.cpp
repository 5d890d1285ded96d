// SPDX-License-Identifier: Apache-2.0
// data and model.
#include <iostream>

#include "app/commands.h"
#include "app/commands_data.h"
#include "app/config.h"
#include "base/log.h"
#include "model/gguf_import.h"

namespace tritonrl {

void add_data(CLI::App& app, Run& run) {
  auto* data = app.add_subcommand("data", "make and inspect tasks");
  data->require_subcommand(1);
  auto* synth =
      data->add_subcommand("synth", "synthesise tasks with solutions and write the train / rl / heldout splits");
  struct Arguments {
    ConfigArguments config;
    std::string out;
  };
  auto arguments = std::make_shared<Arguments>();
  arguments->config.add_to(*synth, false);
  synth->add_option("--out", arguments->out, "folder for train.jsonl, rl.jsonl, heldout.jsonl")->required();
  synth->callback([=, &run] {
    run = [=] {
      DataConfig config = load_config<Config>(arguments->config.files, arguments->config.sets).data;
      Splits splits = make_splits(synthesise(config.synth, config.synth_level1, config.synth_level2), config.split);
      check_disjoint(splits);
      std::filesystem::path out = arguments->out;
      std::filesystem::create_directories(out);
      save_tasks(out / "train.jsonl", splits.train);
      save_tasks(out / "rl.jsonl", splits.rl);
      save_tasks(out / "heldout.jsonl", splits.heldout);
      std::cout << splits.train.size() << " train, " << splits.rl.size() << " rl, " << splits.heldout.size()
                << " heldout tasks in " << out.string() << " (solutions not yet verified)\n";
      return 0;
    };
  });
  add_data_import(*data, run);
  add_data_label(*data, run);
  add_data_check_split(*data, run);
  add_data_variants(*data, run);
  add_data_lint(*data, run);
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
