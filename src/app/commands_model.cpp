// SPDX-License-Identifier: Apache-2.0
// data and model.
#include <iostream>

#include "app/commands.h"
#include "app/commands_data.h"
#include "model/gguf_import.h"

namespace tritonrl {

void add_data(CLI::App& app, Run& run) {
  auto* data = app.add_subcommand("data", "make and inspect tasks");
  data->require_subcommand(1);
  add_data_synth(*data, run);
  add_data_show(*data, run);
  add_data_import(*data, run);
  add_data_label(*data, run);
  add_data_check_split(*data, run);
  add_data_variants(*data, run);
  add_data_lint(*data, run);
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
