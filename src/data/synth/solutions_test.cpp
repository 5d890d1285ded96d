// SPDX-License-Identifier: Apache-2.0
// Solutions compute what their sources do: both run side by side, the kernels in Triton's interpreter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include "base/process/build_paths.h"
#include "base/text.h"
#include "data/synth/graph_synth.h"
#include "data/synth/operators.h"

namespace tritonrl::graphs::solutions_test {
namespace {

std::vector<Task> make(const SynthConfig& config, int64_t count) { return GraphStream(config).next(count); }

SynthConfig plain(const std::vector<std::string>& words) {
  SynthConfig config;
  config.style = SynthStyle::kPlain;
  config.operators = words;
  config.dtypes = {"float32"};
  config.max_nodes = 4;
  return config;
}

std::vector<Task> make_level(const SynthConfig& config, int level, int64_t most) {
  return GraphStream(config).next_of_level(level, most);
}

// Runs sources and solutions side by side in Triton's interpreter.
constexpr char kRun[] = R"PY(
import importlib.util, inspect, json, os, re, sys
os.environ["TRITON_INTERPRET"] = "1"
import torch
torch.set_num_threads(1)
import triton
folder = sys.argv[1]
class FirstConfig:  # Of a kernel that is tuned; there is nothing to time in the interpreter.
    def __init__(self, kernel, config):
        self.kernel, self.config = kernel, config
    def __getitem__(self, grid):
        return lambda *args, **words: self.kernel[grid](*args, **{**self.config.kwargs, **words})
triton.autotune = lambda configs, key: lambda kernel: FirstConfig(kernel, configs[0])
def load(text, name):
    path = f"{folder}/{name}.py"
    open(path, "w").write(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
def rebound(source, name, value):  # "N = 4", or one of "height, width = 8, 9".
    def line(found):
        values, at = found[3].split(", "), found[1].count(",")
        return f"{found[1]}{name}{found[2]} = " + ", ".join(values[:at] + [str(value)] + values[at + 1:])
    return re.subn(rf"(?m)^((?:\w+, )*){name}((?:, \w+)*) = (.*)$", line, source)
bad = 0
tuples = lambda out: out if isinstance(out, tuple) else (out,)
for k, line in enumerate(open(f"{folder}/tasks.jsonl")):
    task = json.loads(line)
    source = task["source"]
    for name, value in task.get("tiny", {}).items():
        source, found = rebound(source, name, value)
        assert found == 1, (task["id"], name)
    ref, sol = load(source, f"r{k}"), load(task["solution"], f"s{k}")
    torch.manual_seed(k)
    with torch.no_grad():
        given = ref.get_init_inputs()
        args, named = given if len(given) == 2 and isinstance(given[1], dict) else (given, {})
        model, inputs = ref.Model(*args, **named).eval(), ref.get_inputs()
        for p in model.parameters():
            p.add_(0.1 * torch.randn_like(p))
        new = sol.ModelNew(*args, **named).eval()
        taken = [[p for p in inspect.signature(kind).parameters.values() if p.kind is not p.VAR_POSITIONAL
                  and p.kind is not p.VAR_KEYWORD] for kind in (ref.Model, sol.ModelNew)]  # Names, order, defaults, hints.
        assert taken[0] == taken[1], (task["id"], *taken)
        assert list(new.state_dict()) == list(model.state_dict()), task["id"]
        new.load_state_dict(model.state_dict())
        got, want = tuples(new(*inputs)), tuples(model(*inputs))
        exact = tuples(model.double()(*[x.double() if x.is_floating_point() else x for x in inputs]))
    for g, w, e in zip(got, want, exact):
        unit = e.double().abs() + e.double().square().mean().sqrt()
        own = ((w.double() - e.double()).abs() / unit.clamp(min=1e-30)).max().item()
        error = ((g.double() - e.double()).abs() / unit.clamp(min=1e-30)).max().item()
        if g.shape != w.shape or g.dtype != w.dtype or not error <= max(8 * own, 1e-4):
            print(task["id"], task["name"], g.shape, w.shape, g.dtype, w.dtype, error, own)
            bad += 1
            break
print(bad, "differ")
sys.exit(1 if bad else 0)
)PY";

void expect_same_answers(const std::vector<Task>& tasks) {
  namespace fs = std::filesystem;
  fs::path folder = fs::temp_directory_path() / cat("graphs_test_", ::getpid());
  fs::create_directories(folder);
  std::string lines;
  for (const Task& task : tasks) lines += json_line(to_json(task)) + "\n";
  write_file(folder / "tasks.jsonl", lines);
  write_file(folder / "run.py", kRun);
  std::string command = cat(python_program(), " -W ignore ", (folder / "run.py").string(), " ", folder.string());
  int status = std::system(command.c_str());
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the lines above name the tasks whose solutions differ";
  fs::remove_all(folder);
}

TEST(Graphs, SolutionsComputeWhatSourcesDo) {
  SynthConfig config;
  config.dtypes = {"float32"};
  config.only_covered = true;
  expect_same_answers(make(config, 120));
}

// Convolutions and pools in all dimensions, transposed, grouped, dilated; products of all layouts; and what follows
// them.
TEST(Graphs, WindowsAndProductsComputeWhatSourcesDo) {
  SynthConfig config;
  config.dtypes = {"float32"};
  config.only_covered = true;
  config.level1_share = 1;
  config.seed = 3;
  std::vector<Task> tasks;
  for (const Operator* op :
       select_operators({"conv", "pool", "norm", "matmul_tn", "matmul_nt", "matmul_tt", "batched_matmul",
                         "batched_matmul_nt", "shared_matmul", "diag_matmul", "scaled_dot_product_attention",
                         "triplet_margin_loss", "max_dim", "min_dim", "prod", "spatial_mean", "spatial_sum"})) {
    config.operators = {op->name};
    auto some = make_level(config, 1, op->family == "conv" ? 6 : 2);
    EXPECT_FALSE(some.empty()) << op->name;
    tasks.insert(tasks.end(), some.begin(), some.end());
  }
  config.operators = {"dropout", "squeeze", "flatten", "sum", "conv3d"};
  config.level1_share = 0;
  for (Task& task : make(config, 12)) tasks.push_back(std::move(task));
  std::string drawn;
  config.operators = {"conv"};
  for (const Task& task : make(config, 200)) drawn += task.source;
  for (const char* argument : {"groups=2", "dilation=2", "stride=(", "output_padding=1", "bias=False"}) {
    EXPECT_THAT(drawn, testing::HasSubstr(argument));
  }
  expect_same_answers(tasks);
}

SynthConfig settled() {
  SynthConfig config;
  config.dtypes = {"float32"};
  config.solutions = SolutionStyle::kSettled;
  config.only_covered = config.by_weight = true;
  config.repeats = 1000;
  return config;
}

// Rows longer than a block in one kernel of several passes, transposed convolutions by phase, one way for the rest.
TEST(Settled, SolutionsComputeWhatSourcesDo) {
  SynthConfig config = settled();
  config.level1_share = 0.7;
  config.layer_share = 0.6;
  expect_same_answers(make(config, 90));
  config.level1_share = 1;
  config.operators = {"conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "group_norm", "instance_norm",
                      "layer_norm",       "rms_norm",         "normalize",        "std",        "logsumexp",
                      "log_softmax"};
  auto tasks = make(config, 60);
  std::string solutions;
  for (const Task& task : tasks) solutions += task.solution;
  for (const char* part : {"for start in range(0, ", "qw = triton.cdiv(out_w, sw)", "for jw in range(0, "}) {
    EXPECT_THAT(solutions, testing::HasSubstr(part));
  }
  expect_same_answers(tasks);
}

// A norm over a long row is one launch, however many passes; what follows element by element is part of the last.
TEST(Settled, LongRowsAreOneKernel) {
  SynthConfig config = settled();
  config.sizes = SizeRange::kGpu;
  config.level1_share = 1;
  config.operators = {"group_norm", "instance_norm", "layer_norm", "softmax", "log_softmax", "std", "logsumexp"};
  int64_t looped = 0;
  for (const Task& task : make(config, 120)) {
    auto count = [&](const char* text) {
      const std::regex wanted(text);
      return std::distance(std::sregex_iterator(task.solution.begin(), task.solution.end(), wanted),
                           std::sregex_iterator());
    };
    looped += count("for start[0-9]* in range") > 0;
    EXPECT_EQ(count("@triton.jit\ndef [a-z_0-9]*kernel"), 1) << task.solution;
    EXPECT_EQ(count("row_kernel\\[\\("), 1) << task.solution;
  }
  EXPECT_GT(looped, 40);
}

TEST(Settled, ProductsAreAsAsked) {
  SynthConfig config = settled();
  config.sizes = SizeRange::kGpu;
  config.operators = {"matmul", "linear", "conv2d", "conv_transpose2d"};
  auto lines = [&](const std::string& wanted) {
    int64_t found = 0;
    for (const Task& task : make(config, 60)) {
      for (const std::string& line : split(task.solution, '\n')) found += line.find(wanted) != std::string::npos;
    }
    return found;
  };
  const int64_t products = lines("acc = tl.dot(");
  EXPECT_GT(products, 30);
  EXPECT_EQ(lines("input_precision=\"ieee\""), products);
  config.products = ProductStyle::kTf32;
  EXPECT_EQ(lines(", acc)"), products);
  EXPECT_EQ(lines("input_precision"), 0);
}

TEST(Settled, OperatorsComeByTheirWeight) {
  SynthConfig config = settled();
  config.level1_share = 1;
  std::map<std::string, int> drawn;
  for (const Task& task : make(config, 3000)) ++drawn[find_operator(task.name)->family];
  EXPECT_GT(drawn["conv"], 3 * drawn["cast"] + 300);
  EXPECT_GT(drawn["matmul"], 250);
  EXPECT_GT(drawn["loss"], 60);
  EXPECT_LT(drawn["movement"], drawn["conv"] / 3);
}

TEST(Plain, SolutionsComputeWhatSourcesDo) {
  auto tasks = make_level(plain({"elementwise"}), 1, 1000);
  for (const Task& task : make(plain({"all"}), 200)) tasks.push_back(task);
  SynthConfig half = plain({"all"});
  half.dtypes = {"float16"};
  half.seed = 8;
  for (const Task& task : make(half, 40)) tasks.push_back(task);
  expect_same_answers(tasks);
}

}  // namespace
}  // namespace tritonrl::graphs::solutions_test
