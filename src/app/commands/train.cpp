// SPDX-License-Identifier: Apache-2.0
// train and report.
#include <cstdio>
#include <iostream>

#include "app/assemble.h"
#include "app/commands/commands.h"
#include "app/train/checkpoints.h"
#include "app/train/pipeline.h"
#include "app/train/rank_run.h"
#include "base/log.h"
#include "report/report.h"

namespace tritonrl {

void ConfigArguments::add_to(CLI::App& command) {
  command.add_option("config", files, "YAML files, the right one wins");
  command.add_option("--set", sets, "override one value: --set sft.optimizer.lr=2e-4")
      ->take_all()
      ->allow_extra_args(false);
}

void ConfigArguments::add_named_to(CLI::App& command, const char* counts) {
  command.add_option("--config", files, cat("YAML files; of them counts: ", counts));
  command.add_option("--set", sets, "override one value: --set verify.workers=4")->allow_extra_args(false);
}

void ConfigArguments::add_weaker_to(CLI::App& command) {
  command.add_flag("--allow-weaker-sandbox", weaker, "continue where the sandbox is incomplete; verdicts say so");
}

Config ConfigArguments::load() const {
  Config config = load_config<Config>(files, sets);
  config.verify.allow_weaker_sandbox |= weaker;
  return config;
}

namespace {

struct TrainArguments {
  ConfigArguments config;
  bool dry_run = false, explain = false, overwrite = false;
  int64_t ranks = 1;

  // What a rank is started with.
  std::vector<std::string> of_a_rank() const {
    std::vector<std::string> words = {"train"};
    words.insert(words.end(), config.files.begin(), config.files.end());
    for (const std::string& set : config.sets) words.insert(words.end(), {"--set", set});
    if (overwrite) words.push_back("--overwrite");
    if (config.weaker) words.push_back("--allow-weaker-sandbox");
    return words;
  }
};

}  // namespace

void add_train(CLI::App& app, Run& run, const std::string& command_line) {
  auto* command = app.add_subcommand("train", "the main job: SFT -> RL -> evaluation -> report, from one YAML file");
  auto arguments = std::make_shared<TrainArguments>();
  arguments->config.add_to(*command);
  command->add_flag("--dry-run", arguments->dry_run, "print the resolved config and stop");
  command->add_flag("--explain", arguments->explain,
                    "print every key with its meaning and stop; with the name of an algorithm only the keys it has");
  command->add_flag("--overwrite", arguments->overwrite, "start anew where the run directory holds another run");
  command
      ->add_option("--ranks,--gpus", arguments->ranks,
                   "train by so many processes on this machine, each with a GPU of its own where there are some")
      ->check(CLI::Range(1, 1024));
  arguments->config.add_weaker_to(*command);
  command->callback([=, &run] {
    run = [=] {
      if (arguments->config.files.empty() && !arguments->dry_run && !arguments->explain) {
        throw usage_error("train needs a config file", "", "for example: tritonrl train configs/quickstart.yaml");
      }
      ConfigArguments of = arguments->config;
      bool of_algorithm = arguments->explain && !of.files.empty() && named<Algorithm>(of.files.front());
      if (of_algorithm) {
        of.sets.push_back("rl.algorithm=" + of.files.front());
        of.files.erase(of.files.begin());
      }
      Config config = of.load();
      if (of_algorithm) {
        std::cout << to_yaml(config.rl, true);
        return 0;
      }
      if (arguments->dry_run || arguments->explain) {
        std::cout << to_yaml(config, arguments->explain);
        return 0;
      }
      if (arguments->ranks > 1) return start_ranks(arguments->ranks, arguments->of_a_rank());
      auto folder = run_training(config, {arguments->overwrite, command_line});
      if (Ranks::place().rank > 0) return 0;
      std::cout << "results:  " << (folder / "results.json").string()
                << "\nreport:   " << (folder / "report.html").string() << "\n";
      return 0;
    };
  });
}

void add_report(CLI::App& app, Run& run) {
  auto* command = app.add_subcommand("report", "write report.html and report.md of a run directory anew");
  auto folder = std::make_shared<std::string>();
  command->add_option("run", *folder, "run directory")->required();
  command->callback([=, &run] {
    run = [=] {
      write_report(*folder);
      std::cout << *folder << "/report.html\n";
      return 0;
    };
  });
}

}  // namespace tritonrl
