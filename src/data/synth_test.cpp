// SPDX-License-Identifier: Apache-2.0
#include "data/synth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <set>

#include "base/build_paths.h"
#include "base/error.h"
#include "base/text.h"
#include "data/python_source.h"

namespace tritonrl::synth_test {
namespace {

SynthConfig with_operators(const std::string& operators) {
  SynthConfig config;
  config.operators = operators;
  return config;
}

std::set<std::string> hashes(const std::vector<Task>& tasks, int level) {
  std::set<std::string> out;
  for (const Task& task : tasks) {
    if (task.level == level) out.insert(task.graph_hash);
  }
  return out;
}

TEST(SynthTest, SameSeedSameTasks) {
  auto a = synthesise({}, 50, 100), b = synthesise({}, 50, 100);
  SynthConfig other;
  other.seed = 8;
  auto c = synthesise(other, 50, 100);
  int same = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(to_json(a[i]), to_json(b[i]));
    same += a[i].source == c[i].source;
  }
  EXPECT_LT(same, 10);
}

TEST(SynthTest, MoreTasksBeginLikeFewer) {
  auto few = synthesise({}, 20, 30), many = synthesise({}, 40, 60);
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ(to_json(few[i]), to_json(many[i]));
  for (size_t i = 0; i < 30; ++i) EXPECT_EQ(to_json(few[20 + i]), to_json(many[40 + i]));
}

TEST(SynthTest, EnoughDistinctGraphs) {
  EXPECT_GE(level1_recipes({}).size(), 120u);
  EXPECT_GE(level1_recipes(with_operators("all")).size(), 180u);
  auto tasks = synthesise({}, 150, 2000);
  EXPECT_EQ(hashes(tasks, 1).size(), level1_recipes({}).size()) << "every graph once before any twice";
  EXPECT_EQ(hashes(tasks, 2).size(), 2000u);
  for (const std::string& hash : hashes(tasks, 1)) EXPECT_EQ(hashes(tasks, 2).count(hash), 0u);
}

TEST(SynthTest, SizesAreNotPartOfTheGraph) {
  auto tasks = synthesise({}, 3 * 133, 0);
  std::map<std::string, std::set<std::string>> solutions, sources;
  for (const Task& task : tasks) {
    solutions[task.graph_hash].insert(task.solution);
    sources[task.graph_hash].insert(task.source);
  }
  size_t resized = 0;
  for (const auto& [hash, texts] : solutions) {
    // A second text would mean that the solution has sizes in it. clamp and hardtanh share a graph, but not a level-1
    // slot.
    EXPECT_EQ(texts.size(), 1u) << *texts.begin();
    resized += sources[hash].size() > 1;
  }
  EXPECT_GT(resized, 100u);
}

TEST(SynthTest, TasksAreWellFormed) {
  std::set<std::string> ids;
  for (const Task& task : synthesise(with_operators("all"), 250, 600)) {
    EXPECT_TRUE(ids.insert(task.id).second);
    EXPECT_NO_THROW(task_from_json(to_json(task), task.id));
    EXPECT_EQ(first_syntax_error(task.solution), 0) << task.solution;
    EXPECT_EQ(top_level_definitions(task.solution), (std::set<std::string>{"kernel", "ModelNew"}));
    EXPECT_EQ(task.solution.find("F."), std::string::npos) << "the kernel does the work, not a library";
    EXPECT_EQ(task.graph_hash.rfind("graph:", 0), 0u);
    ASSERT_TRUE(task.tiny.count("M") && task.tiny.count("N"));
    for (const auto& [name, size] : task.tiny) {
      EXPECT_NE(task.source.find("\n" + name + " = "), std::string::npos) << name;
      EXPECT_TRUE(size % 2 == 1 && size <= 11) << size;
    }
    EXPECT_NE(task.tiny.at("M"), task.tiny.at("N"));
  }
}

TEST(SynthTest, FamiliesWithoutAWeightStayAway) {
  SynthConfig config;
  config.families = {.elementwise = 0, .reduction = 0, .softmax = 0, .norm = 0, .gemm = 1};
  for (const Task& task : synthesise(config, 10, 40))
    EXPECT_NE(task.solution.find("tl.dot"), std::string::npos) << task.name;
  config.families.gemm = 0;
  EXPECT_THROW(synthesise(config, 1, 1), Error);
}

TEST(SynthTest, SaysWhenThereAreNotThatManyGraphs) {
  SynthConfig config;
  config.families = {.elementwise = 1, .reduction = 0, .softmax = 0, .norm = 0, .gemm = 0};
  config.max_steps = 2;  // About 4,000 graphs.
  try {
    synthesise(config, 0, 6000);
    FAIL() << "6,000 chains of two operators";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("different level-2 tasks"));
  }
}

TEST(SynthTest, FloatsAreShortPython) {
  EXPECT_EQ(python_float(0.1), "0.1");
  EXPECT_EQ(python_float(-2), "-2.0");
  EXPECT_EQ(python_float(1e-5), "1e-5");
  EXPECT_EQ(python_float(100), "100.0");
}

// Runs sources and solutions side by side in Triton's interpreter: the templates of element_ops.cpp and the skeletons
// of recipe_triton.cpp are only as good as what they compute.
constexpr char kRun[] = R"PY(
import importlib.util, json, os, sys
os.environ["TRITON_INTERPRET"] = "1"
import torch
torch.set_num_threads(1)
folder = sys.argv[1]
def load(text, name):
    path = f"{folder}/{name}.py"
    open(path, "w").write(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
bad = 0
for k, line in enumerate(open(f"{folder}/tasks.jsonl")):
    task = json.loads(line)
    ref, sol = load(task["source"], f"r{k}"), load(task["solution"], f"s{k}")
    for constants in (task["tiny"], {"M": 33, "N": 41, "K": 47}):
        for name, value in constants.items():
            setattr(ref, name, value)
        torch.manual_seed(k)
        with torch.no_grad():
            model, inputs = ref.Model(*ref.get_init_inputs()), ref.get_inputs()
            for p in model.parameters():
                p.add_(0.1 * torch.randn_like(p))
            new = sol.ModelNew(*ref.get_init_inputs())
            new.load_state_dict(model.state_dict())
            got, want = new(*inputs), model(*inputs)
            exact = model.double()(*[x.double() for x in inputs])
        limit = max(8 * (want - exact).abs().max().item(), 2e-6 * max(1.0, exact.abs().max().item()))
        if got.shape != want.shape or got.dtype != want.dtype or not (got - exact).abs().max().item() <= limit:
            print(task["id"], task["name"], constants, got.shape, want.shape)
            bad += 1
            break
sys.exit(1 if bad else 0)
)PY";

TEST(SynthTest, SolutionsComputeWhatSourcesDo) {
  namespace fs = std::filesystem;
  fs::path folder = fs::temp_directory_path() / cat("synth_test_", ::getpid());
  fs::create_directories(folder);
  auto config = with_operators("all");
  auto tasks = synthesise(config, static_cast<int64_t>(level1_recipes(config).size()), 100);
  save_tasks(folder / "tasks.jsonl", tasks);
  write_file(folder / "run.py", kRun);
  int status = std::system(
      cat(python_program(), " -W ignore ", (folder / "run.py").string(), " ", folder.string(), " 2>&1").c_str());
  EXPECT_EQ(WEXITSTATUS(status), 0) << "the lines above name the tasks whose solutions are wrong";
  fs::remove_all(folder);
}

}  // namespace
}  // namespace tritonrl::synth_test
