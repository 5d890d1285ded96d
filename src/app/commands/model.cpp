// SPDX-License-Identifier: Apache-2.0
// data and model.
#include <filesystem>
#include <iostream>

#include "app/assemble.h"
#include "app/commands/commands.h"
#include "app/commands/commands_data.h"
#include "app/train/training_check.h"
#include "base/files/json.h"
#include "base/files/json_fields.h"
#include "model/files/export_adapter.h"
#include "model/files/gguf_import.h"
#include "model/files/merge_folder.h"

namespace tritonrl {

namespace fs = std::filesystem;

void add_data(CLI::App& app, Run& run) {
  auto* data = app.add_subcommand("data", "make and inspect tasks");
  data->require_subcommand(1);
  add_data_synth(*data, run);
  add_data_show(*data, run);
  add_data_import(*data, run);
  add_data_label(*data, run);
  add_data_check_split(*data, run);
  add_data_variants(*data, run);
  add_data_solve(*data, run);
  add_data_lint(*data, run);
}

void add_model(CLI::App& app, Run& run) {
  auto* model = app.add_subcommand("model", "bring models in, and out");
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
  auto* merge = model->add_subcommand("merge", "write base + adapter as a plain Hugging Face folder");
  auto base = std::make_shared<std::string>(), adapter = std::make_shared<std::string>();
  auto merged = std::make_shared<std::string>();
  merge->add_option("adapter", *adapter, "folder with adapter_model.safetensors, e.g. RUN/checkpoints/rl_1")
      ->required();
  merge->add_option("folder", *merged, "folder to write")->required();
  merge->add_option("--base", *base, "folder of the base model; default: the one that the adapter names");
  merge->callback([=, &run] {
    run = [=] {
      std::string from = *base;
      if (from.empty()) from = read_json(*adapter + "/adapter_config.json").value("base_model_name_or_path", "");
      MergeReport report = merge_adapter(find_model(from), *adapter, *merged);
      std::cout << *merged << ": " << report.tensors << " tensors, " << report.merged << " of them merged\n";
      return 0;
    };
  });
  auto* to_others = model->add_subcommand("export", "an adapter for others: bfloat16, the base by its name, no paths");
  auto trained = std::make_shared<std::string>(), folder = std::make_shared<std::string>();
  auto name = std::make_shared<std::string>("HuggingFaceTB/SmolLM2-135M-Instruct");
  to_others->add_option("adapter", *trained, "folder with adapter_model.safetensors, e.g. RUN/checkpoints/sft")
      ->required();
  to_others->add_option("folder", *folder, "folder to write")->required();
  to_others->add_option("--base", *name, "what the base model is called on the hub")->capture_default_str();
  to_others->callback([=, &run] {
    run = [=] {
      ExportReport report = export_adapter(*trained, *name, *folder);
      if (auto set = training_set_of_checkpoint(*trained))  // So that who trains on, or evaluates, knows it.
        write_file(fs::path(*folder) / kTrainingSetFile, json_of(*set).dump(2) + "\n");
      std::cout << *folder << ": " << report.tensors << " tensors, " << report.bytes << " bytes\n";
      return 0;
    };
  });
}

}  // namespace tritonrl
