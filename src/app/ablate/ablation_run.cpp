// SPDX-License-Identifier: Apache-2.0
// The cells of an ablation as processes.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <thread>

#include "app/ablate/ablation.h"
#include "base/error.h"
#include "base/log.h"
#include "base/process/interrupt.h"
#include "base/text.h"
#include "verify/execute/judge_slots.h"

namespace tritonrl {
namespace {

namespace fs = std::filesystem;

bool is_done(const AblationCell& cell) { return fs::exists(cell.folder / "results.json"); }

// Names of this machine's GPUs as CUDA_VISIBLE_DEVICES takes them: of those that we may see ourselves.
std::vector<std::string> visible_gpus() {
  std::vector<std::string> names;
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES"); visible && !trim(visible).empty()) {
    return split(visible, ',');
  }
  for (size_t i = 0; i < JudgeSlots::devices().size(); ++i) names.push_back(cat(i));
  return names;
}

// `tritonrl train ...`, with what it says in CELL.out. `slot`: which GPU, where there are several.
pid_t start(const AblationCell& cell, const fs::path& program, const std::vector<std::string>& gpus, size_t slot) {
  std::vector<std::string> words{program.string(), "train"};
  words.insert(words.end(), cell.files.begin(), cell.files.end());
  for (const std::string& set : cell.sets) words.insert(words.end(), {"--set", set});
  fs::create_directories(cell.folder.parent_path());
  std::string log = cell.folder.string() + ".out", gpu = gpus.empty() ? "" : gpus[slot % gpus.size()];
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = ::fork();
  if (child < 0) throw environment_error("cannot start another process");
  if (child > 0) return child;
  ::setpgid(0, 0);  // Ctrl-C comes to us, and from us to it.
  int fd = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (fd >= 0) {
    ::dup2(fd, 1);
    ::dup2(fd, 2);
  }
  if (gpus.size() > 1) ::setenv("CUDA_VISIBLE_DEVICES", gpu.c_str(), 1);
  ::execv(arguments[0], arguments.data());
  ::_exit(127);
}

// Runs them, `jobs` at a time.
void run_all(const std::vector<const AblationCell*>& cells, const AblationOptions& options) {
  std::vector<std::string> gpus = JudgeSlots::devices().empty() ? std::vector<std::string>() : visible_gpus();
  auto jobs =
      static_cast<size_t>(options.jobs > 0 ? options.jobs : static_cast<int64_t>(std::max<size_t>(gpus.size(), 1)));
  struct Running {
    const AblationCell* cell;
    size_t slot;
    double began;
  };
  std::map<pid_t, Running> running;
  std::vector<bool> busy(jobs, false);
  size_t next = 0, done = 0;
  bool told = false;
  while (next < cells.size() || !running.empty()) {
    while (next < cells.size() && running.size() < jobs && !interrupted()) {
      size_t slot = 0;
      while (busy[slot]) ++slot;
      busy[slot] = true;
      const AblationCell* cell = cells[next++];
      running[start(*cell, options.program, gpus, slot)] = {cell, slot, now_s()};
      log_info(cat("cell ", cell->name, " begins"));
    }
    if (interrupted() && !std::exchange(told, true)) {
      for (const auto& [child, one] : running)
        ::kill(child, SIGTERM);  // It stops after a step, and continues next time.
    }
    int status = 0;
    pid_t ended = ::waitpid(-1, &status, WNOHANG);
    auto it = running.find(ended);
    if (ended <= 0 || it == running.end()) {
      if (interrupted() && running.empty()) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      continue;
    }
    Running one = it->second;
    running.erase(it);
    busy[one.slot] = false;
    ++done;
    std::string took = human_seconds(now_s() - one.began);
    if (is_done(*one.cell)) {
      log_info(cat("cell ", one.cell->name, " is done after ", took, " (", done, " of ", cells.size(), ")"));
    } else {
      int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      log_warn(cat("cell ", one.cell->name, " ended with ", code, " after ", took, ": see ", one.cell->folder.string(),
                   ".out"));
    }
    if (interrupted() && running.empty()) break;
  }
  if (interrupted()) throw Interrupted();
}

}  // namespace

void run_cells(const Ablation& ablation, const AblationOptions& options) {
  std::vector<const AblationCell*> open;
  bool anyone_shares = false;
  for (const AblationCell& cell : ablation.cells) {
    if (cell.name.find(options.only) == std::string::npos || is_done(cell)) continue;
    open.push_back(&cell);
    for (const std::string& set : cell.sets) anyone_shares |= set.rfind("run.start_from=", 0) == 0;
  }
  log_info(cat(ablation.cells.size(), " cells, ", open.size(), " to run"));
  if (anyone_shares && !is_done(ablation.shared)) {
    run_all({&ablation.shared}, options);
    if (!is_done(ablation.shared)) {
      throw environment_error("what all cells begin with failed", ablation.shared.folder.string() + ".out");
    }
  }
  run_all(open, options);
}

}  // namespace tritonrl
