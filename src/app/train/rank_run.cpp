// SPDX-License-Identifier: Apache-2.0
#include "app/train/rank_run.h"

#include <ATen/Parallel.h>
#include <arpa/inet.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <thread>

#include "app/assemble.h"
#include "app/train/checkpoints.h"
#include "base/log.h"
#include "base/process/interrupt.h"
#include "base/text.h"
#include "eval/training_set.h"
#include "verify/execute/judge_slots.h"

namespace tritonrl {
namespace {

namespace fs = std::filesystem;

constexpr double kToEnd = 20;  // Seconds for the other ranks, once one has failed.

// What the others need to know of what is done. Checkpoints are fetched when they are loaded.
std::vector<std::string> files_to_share(const fs::path& run) {
  std::vector<std::string> names;
  for (const char* folder : {"tasks", "rollouts"}) {
    if (!fs::exists(run / folder)) continue;
    for (const auto& entry : fs::directory_iterator(run / folder)) {
      std::string name = entry.path().filename().string();
      if (std::string_view(folder) == "tasks" || name.starts_with("eval_")) names.push_back(cat(folder, "/", name));
    }
  }
  if (fs::exists(run / kTrainingSetFile)) names.push_back(kTrainingSetFile);
  return names;
}

std::string hash_of_adapter(const fs::path& folder) {
  std::string all;
  for (const char* name : {"adapter_model.safetensors", "model.safetensors"}) {
    if (!folder.empty() && fs::exists(folder / name)) all += content_hash(read_file(folder / name));
  }
  return all;
}

int64_t free_port() {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  bool found = fd >= 0 && ::bind(fd, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
               ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  if (fd >= 0) ::close(fd);
  if (!found) throw environment_error(cat("no port is free on this machine: ", std::strerror(errno)));
  return ntohs(address.sin_port);
}

pid_t start_rank(const std::map<std::string, std::string>& environment, std::vector<std::string> words) {
  const std::string program = fs::read_symlink("/proc/self/exe").string();
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t child = ::fork();
  if (child < 0) throw environment_error(cat("cannot start another process: ", std::strerror(errno)));
  if (child > 0) return child;
  ::setpgid(0, 0);  // Ctrl-C comes to us, and from us to it: once.
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  ::execv(program.c_str(), argv.data());
  ::_exit(127);
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status))
    return cat("was ended by signal ", WTERMSIG(status), " (", ::strsignal(WTERMSIG(status)), ")");
  return cat("ended with exit code ", WEXITSTATUS(status));
}

}  // namespace

void take_place(const Ranks::Place& place, const Config& config) {
  if (place.size == 1) return;
  if (place.rank > 0) set_log_speaker(cat("rank ", place.rank));
  auto gpus = static_cast<int64_t>(JudgeSlots::devices().size());
  bool given = gpus == 1 && std::getenv("SLURM_PROCID") && std::getenv("CUDA_VISIBLE_DEVICES");
  if (gpus == 0 || given) return;  // srun --gpus-per-task shows each its own.
  if (config.policy.device != "cpu" && place.local >= gpus) {
    throw environment_error(
        cat("rank ", place.rank, " is number ", place.local + 1, " on a machine with ", gpus, " GPUs"), "",
        "start as many ranks there as it has GPUs; two on one GPU only wait for each other");
  }
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  auto own = static_cast<size_t>(place.local % gpus);
  ::setenv("CUDA_VISIBLE_DEVICES", visible ? trim(split(visible, ',')[own]).c_str() : cat(own).c_str(), 1);
}

RunDir open_run(const Config& config, bool overwrite, Ranks& ranks) {
  std::string yaml = to_yaml(config);
  fs::path path = fs::path(config.run.folder) / config.run.name;
  if (ranks.size() > 1) {
    ranks.require_same("program", TRITONRL_VERSION, "install the same version everywhere");
    ranks.require_same("config", yaml, "give all ranks the same files and --set options");
    fs::path model = find_model(config.policy.model);
    ranks.require_same("model", model_fingerprint(model), "policy.model must be the same everywhere");
    ranks.require_same("tokenizer", content_hash(read_file(model / "tokenizer.json")), "it is a file of policy.model");
    ranks.require_same("prompt", read_file(find_data_file(config.data.prompt)), "data.prompt names it");
    ranks.require_same("adapter", hash_of_adapter(config.policy.adapter), "policy.adapter names it");
  }
  std::optional<RunDir> first;
  if (ranks.first()) first = RunDir::open(path, yaml, overwrite);
  ranks.wait_for_all();  // What is overwritten is gone.
  if (first) return std::move(*first);
  path = path / "ranks" / cat(ranks.rank());
  bool another = fs::exists(path / "config.yaml") && read_file(path / "config.yaml") != yaml;
  if (overwrite || another) fs::remove_all(path);
  for (const char* own : {"config.yaml", "state.json", "steps.jsonl", "verdicts.jsonl"}) fs::remove(path / own);
  for (const char* own : {"checkpoints", "tasks"}) fs::remove_all(path / own);
  return RunDir::open(path, yaml, false);
}

void share_processors(const Ranks& ranks, VerifyConfig* verify) {
  if (ranks.size() == 1) return;
  int64_t own = std::max<int64_t>(1, std::thread::hardware_concurrency() / ranks.on_this_machine());
  at::set_num_threads(static_cast<int>(own));
  if (verify->workers == 0) verify->workers = own;
}

void share_run(RunDir& run, Ranks& ranks) {
  if (ranks.size() == 1) return;
  Json state = Json::parse(ranks.from_first(ranks.first() ? run.state().dump() : ""));
  std::vector<std::string> names;
  if (ranks.first()) names = files_to_share(run.path());
  names = split(ranks.from_first(join(names, "\n")), '\n');
  for (const std::string& name : names) {
    if (name.empty()) continue;
    std::string bytes = ranks.from_first(ranks.first() ? read_file(run / name) : "");
    if (ranks.first()) continue;
    fs::create_directories((run / name).parent_path());
    write_file(run / name, bytes);
  }
  if (!ranks.first()) run.adopt(std::move(state));
}

int start_ranks(int64_t count, const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {"tritonrl"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::map<std::string, std::string> environment = {{"WORLD_SIZE", cat(count)},
                                                    {"LOCAL_WORLD_SIZE", cat(count)},
                                                    {"MASTER_ADDR", "127.0.0.1"},
                                                    {"MASTER_PORT", cat(free_port())}};
  // What breaks is said by the ranks, in one line each.
  if (!std::getenv("TORCH_CPP_LOG_LEVEL")) environment["TORCH_CPP_LOG_LEVEL"] = "ERROR";
  std::map<pid_t, int64_t> running;
  for (int64_t rank = 0; rank < count; ++rank) {
    environment["RANK"] = environment["LOCAL_RANK"] = cat(rank);
    running[start_rank(environment, words)] = rank;
  }
  auto tell = [&](int signal) {
    for (const auto& [process, rank] : running) ::kill(process, signal);
  };
  int code = 0;
  double failed_at = 0;
  bool told = false;
  while (!running.empty()) {
    int status = 0;
    pid_t ended = ::waitpid(-1, &status, WNOHANG);
    if (auto it = running.find(ended); ended > 0 && it != running.end()) {
      int64_t rank = it->second;
      running.erase(it);
      bool fine = WIFEXITED(status) && WEXITSTATUS(status) == 0;
      if (fine || code != 0) continue;
      code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      failed_at = now_s();
      if (code == 130 || interrupted()) continue;
      log_error(cat("rank ", rank, " ", how_it_ended(status), "; the other ", running.size(),
                    " are stopped; the same command continues"));
      tell(SIGTERM);
      continue;
    }
    if (interrupted() && !told && code == 0) {
      told = true;
      tell(SIGINT);
    }
    if (code != 0 && now_s() - failed_at > kToEnd) tell(SIGKILL);
    ::usleep(20'000);
  }
  return code;
}

}  // namespace tritonrl
