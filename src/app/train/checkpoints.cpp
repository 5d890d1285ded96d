// SPDX-License-Identifier: Apache-2.0
#include "app/train/checkpoints.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "base/log.h"
#include "base/process/interrupt.h"

namespace tritonrl {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kFormat = 1;
constexpr const char* kManifest = "checkpoint.json";
constexpr double kStopSeconds = 3;  // For commands, when the run is stopped.
constexpr size_t kBeginning = 1 << 20;

Json description(const fs::path& file) {
  std::string bytes = read_file(file);
  return {{"bytes", bytes.size()}, {"hash", content_hash(bytes)}};
}

// N of "rl_N".
std::optional<int64_t> step_of(const std::string& name) {
  if (!name.starts_with("rl_") || name.size() < 4 || name.size() > 15) return std::nullopt;
  std::string digits = name.substr(3);
  if (!std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; })) return std::nullopt;
  return std::stoll(digits);
}

// Names, which a user may be looking at, never show half a checkpoint.
void remove_whole(const fs::path& folder) {
  fs::path going = folder;
  going += ".gone.tmp";
  fs::remove_all(going);
  fs::rename(folder, going);
  fs::remove_all(going);
}

}  // namespace

std::string model_fingerprint(const fs::path& model) {
  std::string all = read_file(model / "config.json");
  std::set<fs::path> shards;
  for (const auto& entry : fs::directory_iterator(model)) {
    if (entry.path().extension() == ".safetensors") shards.insert(entry.path());
  }
  for (const fs::path& shard : shards) {
    std::string beginning(kBeginning, '\0');
    std::ifstream in(shard, std::ios::binary);
    in.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
    beginning.resize(static_cast<size_t>(in.gcount()));
    all += cat("|", shard.filename().string(), "|", fs::file_size(shard), "|", content_hash(beginning));
  }
  return content_hash(all);
}

void check_checkpoint(const fs::path& folder, const fs::path& model) {
  fs::path file = folder / kManifest;
  if (!fs::exists(file)) return;
  Json manifest = read_json(file);
  auto damaged = [&](const std::string& what, const fs::path& where) {
    return usage_error(what, where.string(), "the checkpoint is damaged or was copied incompletely: take another one");
  };
  try {
    auto format = manifest.at("format").get<int64_t>();
    if (format != kFormat) {
      throw usage_error(cat("is a checkpoint of format ", format, ", this program reads ", kFormat), folder.string(),
                        "use the version of the program that wrote it: " + manifest.value("program", "unknown"));
    }
    for (const auto& [name, described] : manifest.at("files").items()) {
      if (!fs::exists(folder / name)) throw damaged("is missing in the checkpoint", folder / name);
      Json there = description(folder / name);
      if (there != described) {
        throw damaged(cat("is not what was saved: ", there["bytes"], " bytes, was ", described.at("bytes")),
                      folder / name);
      }
    }
    const Json& base = manifest.at("base");
    if (base.at("fingerprint") != model_fingerprint(model)) {
      throw usage_error(cat("was trained on another base model than ", model.string()), folder.string(),
                        "it was " + base.at("folder").get<std::string>() + ": set policy.model");
    }
  } catch (const Json::exception&) {
    throw damaged("lacks a field or has one of the wrong type", file);
  }
}

Checkpoints::Checkpoints(const CheckpointConfig& config, RunDir& run) : config_(config), run_(run) {}

Checkpoints::~Checkpoints() {
  if (!commands_) return;
  for (const std::string& name : commands_->finish(kStopSeconds)) {
    log_warn(cat("after_save for ", name, " was not run to its end; the next start runs it"));
  }
}

fs::path Checkpoints::path(const std::string& name) const { return run_.path() / "checkpoints" / name; }

std::string Checkpoints::name_of(int64_t step) const { return step == 0 ? "sft" : cat("rl_", step); }

int64_t Checkpoints::last_step() const {
  int64_t step = 0;
  while (run_.phase_done(cat("rl/step_", step + 1))) ++step;
  return step;
}

void Checkpoints::remove(const std::string& beginning, const std::string& kept) {
  std::vector<fs::path> going;
  for (const auto& entry : fs::directory_iterator(run_.path() / "checkpoints")) {
    std::string name = entry.path().filename().string();
    if (name.starts_with(beginning) && name != kept && entry.path().extension() != ".tmp")
      going.push_back(entry.path());
  }
  for (const fs::path& folder : going) remove_whole(folder);
}

void Checkpoints::resume() {
  std::vector<fs::path> leftovers;
  for (const auto& entry : fs::directory_iterator(run_.path() / "checkpoints")) {
    if (entry.path().extension() == ".tmp") leftovers.push_back(entry.path());
  }
  for (const fs::path& folder : leftovers) fs::remove_all(folder);
  note_best();
  if (!config_.after_save.empty()) {
    fs::path file = run_.path() / "after_save.jsonl";
    std::set<int64_t> ended;
    if (fs::exists(file)) {
      std::ifstream in(file);
      for (std::string line; std::getline(in, line);) {
        Json json = Json::parse(line, nullptr, false);
        if (json.is_object()) ended.insert(json.value("step", int64_t{-1}));  // A line cut short is none.
      }
    }
    ended_.emplace(AppendFile::open(file));
    commands_ = std::make_unique<BackgroundCommands>(
        run_.path() / "after_save.log", [this](const BackgroundCommand& command, int code, double seconds) {
          if (code != 0) {
            log_warn(cat("after_save for ", command.name, " ended with exit code ", code, ", see ",
                         (run_.path() / "after_save.log").string()));
          }
          try {
            ended_->write(json_line({{"checkpoint", command.name},
                                     {"step", std::stoll(command.environment.at("TRITONRL_STEP"))},
                                     {"exit_code", code},
                                     {"seconds", seconds}}) +
                          "\n");
          } catch (const Error& e) {
            log_warn(e.what());
          }
        });
    for (int64_t step = run_.phase_done("sft") ? 0 : 1; step <= last_step(); ++step) {
      if (!ended.contains(step) && fs::exists(path(name_of(step)))) announce(step);
    }
  }
  prune();
}

void Checkpoints::save(const std::string& name, const fs::path& model,
                       const std::function<void(const fs::path& folder)>& write) {
  fs::path unfinished = path(name + ".tmp");
  const std::string hint =
      "free some space on that disk (checkpoint.keep_last keeps fewer checkpoints), then start again: the same command "
      "continues from the last whole one";
  try {
    fs::remove_all(unfinished);
    fs::create_directories(unfinished);
    write(unfinished);
    Json files = Json::object();
    for (const auto& entry : fs::directory_iterator(unfinished)) {
      files[entry.path().filename().string()] = description(entry.path());
    }
    Json manifest = {{"format", kFormat},
                     {"program", "tritonrl " TRITONRL_VERSION},
                     {"name", name},
                     {"base", {{"folder", model.string()}, {"fingerprint", model_fingerprint(model)}}},
                     {"files", std::move(files)}};
    write_file(unfinished / kManifest, manifest.dump(2) + "\n");
    sync_tree(unfinished);
    if (fs::exists(path(name))) remove_whole(path(name));  // Of a phase that was not recorded.
    fs::rename(unfinished, path(name));
    sync_folder(path(name).parent_path());
  } catch (const Error& e) {
    std::error_code ignored;
    fs::remove_all(unfinished, ignored);
    throw environment_error("the checkpoint could not be saved: " + e.message(), e.where(), hint);
  } catch (const fs::filesystem_error& e) {
    std::error_code ignored;
    fs::remove_all(unfinished, ignored);
    throw environment_error("the checkpoint could not be saved: " + e.code().message(), e.path1().string(), hint);
  }
}

void Checkpoints::done(int64_t step) {
  note_best();
  if (commands_) announce(step);
  prune();
}

void Checkpoints::announce(int64_t step) {
  std::string name = name_of(step);
  commands_->add({name,
                  config_.after_save,
                  {{"TRITONRL_CHECKPOINT", fs::absolute(path(name)).lexically_normal().string()},
                   {"TRITONRL_RUN", fs::absolute(run_.path()).lexically_normal().string()},
                   {"TRITONRL_STEP", cat(step)}}});
}

void Checkpoints::note_best() {
  if (!config_.keep_best) return;
  Json best;
  auto consider = [&](int64_t step, const char* measure, Json found) {
    if (!found.contains(measure) || !found[measure].is_number()) return;
    if (!best.is_null() && found[measure] < best[measure]) return;
    best = std::move(found);
    best.update({{"name", name_of(step)}, {"step", step}});
  };
  if (config_.best_by == BestBy::kHeldout) {
    auto score_of = [&](const std::string& phase) {
      Json score = run_.phase_data(phase).value("score", Json::object());
      auto scored = score.value("scored", int64_t{0});
      if (scored > 0) score["heldout_correct_rate"] = score["correct"].get<double>() / static_cast<double>(scored);
      return score;
    };
    if (run_.phase_done("eval/sft")) consider(0, "heldout_correct_rate", score_of("eval/sft"));
    int64_t last = last_step();
    for (int64_t step = 1; step <= last; ++step) {
      std::string phase = cat("eval/rl_", step);
      if (run_.phase_done(phase)) consider(step, "heldout_correct_rate", score_of(phase));
    }
    if (run_.phase_done("eval/rl")) consider(last, "heldout_correct_rate", score_of("eval/rl"));
  } else {
    for (int64_t step = 0; step < last_step(); ++step) {
      Json score = run_.phase_data(cat("rl/step_", step + 1)).value("score", Json::object());
      auto of = score.value("of_step", step);
      score.erase("of_step");
      consider(of, "reward", std::move(score));
    }
  }
  if (!best.is_null()) run_.note("best_checkpoint", best);
}

void Checkpoints::prune() {
  if (config_.keep_last == 0) return;
  std::set<std::string> kept;
  if (commands_) {
    for (std::string& name : commands_->unfinished()) kept.insert(std::move(name));
  }
  if (Json best = this->best(); best.is_object()) kept.insert(best.at("name").get<std::string>());
  int64_t last = last_step(), oldest = last - config_.keep_last + 1;
  if (config_.keep_best && last > 0) {  // Whose rollouts have not been scored yet.
    Json ahead = run_.phase_data(cat("rl/step_", last)).value("ahead", Json());
    if (ahead.is_object()) oldest = std::min(oldest, ahead.value("version", oldest));
  }
  std::vector<fs::path> going;
  for (const auto& entry : fs::directory_iterator(run_.path() / "checkpoints")) {
    std::string name = entry.path().filename().string();
    auto step = step_of(name);
    if (step && *step < oldest && !kept.contains(name)) going.push_back(entry.path());
  }
  for (const fs::path& folder : going) {
    log_debug(cat("removing ", folder.string()));
    remove_whole(folder);
  }
}

void Checkpoints::finish() {
  if (commands_) {
    auto waiting = commands_->unfinished();
    if (!waiting.empty()) log_info(cat("waiting for after_save of ", join(waiting, ", ")));
    // In short turns, so that a request to stop is heard.
    for (double until = now_s() + config_.after_save_wait_s; now_s() < until && !interrupted();) {
      if (commands_->unfinished().empty()) break;
      ::usleep(50'000);
    }
    for (const std::string& name : commands_->finish(0)) {
      log_warn(cat("after_save for ", name, " was not run to its end; the next start runs it"));
    }
  }
  prune();
  commands_.reset();
}

}  // namespace tritonrl
