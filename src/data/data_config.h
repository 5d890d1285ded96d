// SPDX-License-Identifier: Apache-2.0
// The data section of a config file: which tasks to make, how to split them, what the policy is shown.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"
#include "data/synth/graph_synth.h"
#include "data/tasks/split.h"
#include "data/tasks/task_file.h"
#include "data/tasks/task_sampler.h"

namespace tritonrl {

struct DataConfig {
  std::string prompt = "prompts/triton.txt";  // Relative to the project's root.
  bool plan = false;
  std::string feedback = "prompts/feedback.txt";
  int64_t feedback_chars = 1500;
  graphs::SynthConfig synth;
  SplitConfig split;
  SamplerChoice sampler;
  double verify_share = 1;     // Of the supervised tasks; the others are taught unverified.
  TrainTasksConfig train;      // In place of the synthesiser's split, where a file or a stream is named.
  TaskFileConfig rl, heldout;  // The same, where a file is named.
  std::string exclude;         // "" = training is compared with no benchmark.
  std::vector<std::string> refuse_leaks = {"graph", "source", "constants", "outline", "near"};
  template <class V>
  void for_each_field(V& v) {
    v("prompt", prompt, "prompt text with a {{source}} place holder");
    v("plan", plan,
      "supervised answers begin with a plan, made from the solution's text (for prompts/triton_plan.txt)");
    v("feedback", feedback, "text of the user's turn behind an answer, with {{feedback}} place holders (rl.turns)");
    v("feedback_chars", feedback_chars, "longest feedback, in characters; its head and tail are kept");
    v("synth", synth, "the synthesiser: random operator graphs");
    v.renamed("graphs", "data.synth");
    v("split", split, "train / rl / heldout");
    v.renamed("synth_level1", "data.split");
    v.renamed("synth_level2", "data.split");
    v("train", train, "supervised tasks from a file, which need solutions, or straight from the stream");
    v("rl", rl, "tasks to sample rollouts for, from a file");
    v("heldout", heldout, "evaluation tasks from a file (see eval.tasks too)");
    v("verify_share", verify_share,
      "share of the supervised solutions that are verified before they are taught; what fails is left out");
    v("exclude", exclude,
      "the benchmark to be evaluated on: a task set that data import or data label recorded. No training task has the "
      "graph of one of its tasks, whatever constants and sizes: the stream leaves those out, files with such are "
      "refused. Its single operators may be taught");
    v("refuse_leaks", refuse_leaks,
      "classes of leaks that stop a run, where tasks come from files (data/tasks/leaks.h)");
    v("sampler", sampler, "which tasks a step of reinforcement learning works on");
  }
  void validate() const {
    if (!(verify_share > 0 && verify_share <= 1)) throw usage_error("verify_share must be above 0, and at most 1");
    if (feedback_chars < 100) throw usage_error("feedback_chars must be at least 100");
    for (const std::string& kind : refuse_leaks) {
      if (kind == "graph" || kind == "source" || kind == "constants" || kind == "outline" || kind == "near") continue;
      throw usage_error(cat("refuse_leaks does not know '", kind, "'"), "",
                        "known: graph, source, constants, outline, near");
    }
  }
};

}  // namespace tritonrl
