// SPDX-License-Identifier: Apache-2.0
// data synth: random operator graphs: the splits of a run (train / rl / heldout), or a stream of tasks into one file.
#include <iostream>

#include "app/commands/commands.h"
#include "app/commands/synth_run.h"
#include "app/config.h"

namespace tritonrl {

void add_data_synth(CLI::App& data, Run& run) {
  auto* synth = data.add_subcommand(
      "synth", "synthesise tasks from random operator graphs (data.synth): the splits of a run, or --count of them");
  struct SynthArguments {
    ConfigArguments config;
    std::string out;
    int64_t count = 0, solved = 0;
    bool verify = false;
  };
  auto arguments = std::make_shared<SynthArguments>();
  arguments->config.add_to(*synth);
  synth->add_option("--out", arguments->out, "folder for the splits; with --count a file (JSON lines)")->required();
  synth->add_option("--count", arguments->count, "make this many tasks, of both levels in one file");
  synth->add_option("--solved", arguments->solved,
                    "make and verify tasks until this many have a solution that passed (instead of --count)");
  synth->add_flag("--verify", arguments->verify, "keep only tasks whose reference is of use and whose solution passes");
  arguments->config.add_weaker_to(*synth);
  synth->callback([=, &run] {
    run = [=] {
      Config config = arguments->config.load();
      bool by_count = synth->count("--count") > 0, by_solved = synth->count("--solved") > 0;
      if (by_count && by_solved) throw usage_error("--count or --solved, not both", "--solved");
      if (by_count || by_solved) {
        run_synth(config.data.synth, config.verify,
                  {arguments->count, arguments->solved, arguments->out, arguments->verify || by_solved,
                   load_exclusion(config.data.exclude)},
                  std::cout);
        return 0;
      }
      if (arguments->verify) throw usage_error("--verify goes with --count", "--verify");
      Splits splits = graphs::synthesise(config.data.synth, config.data.split, load_exclusion(config.data.exclude));
      check_disjoint(splits);
      std::filesystem::path out = arguments->out;
      make_output_folder(out);
      save_tasks(out / "train.jsonl", splits.train);
      save_tasks(out / "rl.jsonl", splits.rl);
      save_tasks(out / "heldout.jsonl", splits.heldout);
      std::cout << splits.train.size() << " train, " << splits.rl.size() << " rl, " << splits.heldout.size()
                << " heldout tasks in " << out.string() << " (solutions not yet verified)\n";
      return 0;
    };
  });
}

}  // namespace tritonrl
