// SPDX-License-Identifier: Apache-2.0
#include "base/files/run_dir.h"

#include "base/error.h"

namespace tritonrl {

namespace fs = std::filesystem;

RunDir::RunDir(fs::path path, Json state, StepLog steps, LineFile verdicts)
    : path_(std::move(path)), state_(std::move(state)), steps_(std::move(steps)), verdicts_(std::move(verdicts)) {}

namespace {

// Drops records of phases that were not finished: they will be written again.
void drop_unfinished(const fs::path& file, const Json& state) {
  LineFile::open(file).keep_if([&](const Json& record) {
    const char* key = record.contains("unit") ? "unit" : "phase";
    return record.is_object() && record.contains(key) && record[key].is_string() &&
           state["phases"].contains(record[key].get<std::string>());
  });
}

// Drops what was being written (write_file) when the run was killed.
void drop_half_written(const fs::path& folder) {
  if (!fs::exists(folder)) return;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    std::string name = entry.path().filename().string();
    size_t at = name.rfind(".tmp");
    if (at == std::string::npos || at + 4 == name.size() || !entry.is_regular_file()) continue;
    if (name.find_first_not_of("0123456789", at + 4) == std::string::npos) found.push_back(entry.path());
  }
  std::error_code ignored;  // What cannot be removed does no harm.
  for (const fs::path& file : found) fs::remove(file, ignored);
}

}  // namespace

RunDir RunDir::open(const fs::path& path, const std::string& config_yaml, bool overwrite) {
  try {
    if (overwrite && fs::exists(path)) {
      if (!fs::exists(path / "config.yaml")) {
        throw usage_error("is not a run directory, so it will not be overwritten", path.string());
      }
      fs::remove_all(path);
    }
    for (const char* folder : {"rollouts", "checkpoints"}) fs::create_directories(path / folder);
  } catch (const fs::filesystem_error& e) {
    throw environment_error(std::string("cannot create the run directory: ") + e.code().message(), path.string());
  }
  fs::path config = path / "config.yaml", state_file = path / "state.json";
  Json state = {{"phases", Json::object()}};
  if (fs::exists(config)) {
    if (read_file(config) != config_yaml) {
      throw usage_error("holds a run with another config", path.string(),
                        "choose another run.name, or start it anew with --overwrite");
    }
    if (fs::exists(state_file)) state = read_json(state_file);
    if (!state.is_object() || !state.contains("phases") || !state["phases"].is_object()) {
      throw usage_error("is damaged", state_file.string(), "start the run anew with --overwrite");
    }
    drop_unfinished(path / "steps.jsonl", state);
    drop_unfinished(path / "verdicts.jsonl", state);
    for (const fs::path& folder : {path, path / "rollouts", path / "tasks"}) drop_half_written(folder);
  } else {
    write_file(config, config_yaml);
  }
  return RunDir(path, std::move(state), StepLog::open(path), LineFile::open(path / "verdicts.jsonl"));
}

bool RunDir::phase_done(const std::string& phase) const { return state_["phases"].contains(phase); }

Json RunDir::phase_data(const std::string& phase) const { return phase_done(phase) ? state_["phases"][phase] : Json(); }

void RunDir::mark_done(const std::string& phase, Json data) {
  state_["phases"][phase] = std::move(data);
  write_file(path_ / "state.json", state_.dump(2) + "\n");
}

void RunDir::adopt(Json state) {
  state_ = std::move(state);
  write_file(path_ / "state.json", state_.dump(2) + "\n");
}

void RunDir::note(const std::string& name, Json value) {
  if (noted(name) == value) return;
  state_[name] = std::move(value);
  write_file(path_ / "state.json", state_.dump(2) + "\n");
}

Json RunDir::noted(const std::string& name) const { return state_.value(name, Json()); }

}  // namespace tritonrl
