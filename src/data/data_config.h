// SPDX-License-Identifier: Apache-2.0
// The data section of a config file: how many tasks to make, how to split them, what the policy is shown.
#pragma once

#include <string>

#include "base/config.h"
#include "data/graphs/graph_synth.h"
#include "data/split.h"
#include "data/synth.h"
#include "data/task_sampler.h"

namespace tritonrl {

struct DataConfig {
  std::string prompt = "prompts/triton.txt";  // Relative to the project's root.
  int64_t synth_level1 = 200;                 // Tasks of level 1 to make.
  int64_t synth_level2 = 400;                 // Tasks of level 2 to make.
  SynthConfig synth;
  graphs::GraphSynthConfig graphs;
  SplitConfig split;
  SamplerConfig sampler;
  template <class V>
  void for_each_field(V& v) {
    v("prompt", prompt, "prompt text with a {{source}} place holder");
    v("synth_level1", synth_level1, "tasks of level 1 to make before they are split");
    v("synth_level2", synth_level2, "tasks of level 2 to make before they are split");
    v("synth", synth, "the synthesiser");
    v("graphs", graphs, "random operator graphs: data synth --count");
    v("split", split, "train / rl / heldout");
    v("sampler", sampler, "which tasks a step of reinforcement learning works on");
  }
  void validate() const {
    if (synth_level1 < 0 || synth_level2 < 0) throw usage_error("synth_level1 and synth_level2 must be at least 0");
  }
};

}  // namespace tritonrl
