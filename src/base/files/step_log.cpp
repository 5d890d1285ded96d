// SPDX-License-Identifier: Apache-2.0
#include "base/files/step_log.h"

#include <unistd.h>

#include <set>

#include "base/files/tensorboard.h"
#include "base/text.h"

namespace tritonrl {

namespace fs = std::filesystem;

namespace {

constexpr const char* kUnfinished = "unfinished.tmp";

std::string host_name() {
  char name[256] = "";
  if (::gethostname(name, sizeof name - 1) != 0 || !*name) return "localhost";
  return name;
}

// A name that no file of the folder has; later ones sort behind earlier ones.
std::string next_name(const std::set<std::string>& taken) {
  for (int n = 0;; ++n) {
    std::string name =
        cat("events.out.tfevents.", static_cast<int64_t>(unix_time()), ".", host_name(), ".", ::getpid(), ".", n);
    if (!taken.contains(name)) return name;
  }
}

}  // namespace

StepLog StepLog::open(const fs::path& run) {
  fs::path lines = run / "steps.jsonl", folder = run / "tensorboard";
  try {
    fs::create_directories(folder);
    fs::remove(folder / kUnfinished);
    std::set<std::string> older;
    for (const auto& entry : fs::directory_iterator(folder)) {
      std::string name = entry.path().filename().string();
      if (name.starts_with("events.out.tfevents.")) older.insert(name);
    }
    StepLog log(LineFile::open(lines), AppendFile::open(folder / kUnfinished));
    double now = unix_time();
    std::string records = tf_record(version_event(now)) + tf_record(restart_event(now, 0));
    log.lines_.for_each([&](int64_t, const Json& line) { records += log.record_of(line); });
    log.events_.write(records);
    // A stop in between leaves no event file at all: the next opening writes it.
    for (const std::string& name : older) fs::remove(folder / name);
    fs::rename(folder / kUnfinished, folder / next_name(older));
    return log;
  } catch (const fs::filesystem_error& e) {
    throw environment_error("cannot write TensorBoard's files: " + e.code().message(), folder.string());
  }
}

std::string StepLog::record_of(const Json& line) {
  std::string prefix = line.value("phase", "");
  int64_t step = line.value("step", int64_t{0});
  if (size_t slash = prefix.find('/'); slash != std::string::npos) {
    prefix = prefix.substr(0, slash) + "_" + prefix.substr(prefix.rfind('/') + 1);
    step = ++counted_[prefix];
  }
  Scalars scalars;
  for (const auto& [name, value] : line.items()) {
    if (value.is_number() && name != "step" && name != "time") scalars[prefix + "/" + name] = value.get<double>();
  }
  if (scalars.empty()) return "";
  return tf_record(scalars_event(line.value("time", 0.0), step, scalars));
}

void StepLog::write(Json line) {
  if (!line.contains("time")) line["time"] = unix_time();
  lines_.write(line);
  events_.write(record_of(line));
}

}  // namespace tritonrl
