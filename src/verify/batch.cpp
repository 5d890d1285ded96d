// SPDX-License-Identifier: Apache-2.0
#include "verify/batch.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/files/line_file.h"
#include "base/text.h"
#include "data/tasks/task.h"

namespace tritonrl {
namespace {

namespace fs = std::filesystem;

// The text of a job's "task" or "candidate": a path, or an object with `inline_key`.
std::string content(const Json& job, const char* key, const char* inline_key, const fs::path& folder,
                    const std::string& where, fs::path* path) {
  const Json& value = job[key];
  if (value.is_string()) {
    *path = folder / value.get<std::string>();
    try {
      return read_file(*path);
    } catch (const Error& error) {
      throw usage_error(cat("cannot read the ", key, ": ", error.message()), where);
    }
  }
  if (!value.is_object() || !value.contains(inline_key) || !value[inline_key].is_string()) {
    throw usage_error(cat("\"", key, "\" must be a path or {\"", inline_key, "\": text}"), where);
  }
  return value[inline_key].get<std::string>();
}

Candidate read_job(const Json& job, const fs::path& folder, const std::string& where) {
  if (!job.is_object()) throw usage_error("a job must be a JSON object", where);
  for (const char* key : {"id", "task", "candidate"}) {
    if (!job.contains(key)) throw usage_error(cat("a job lacks \"", key, "\""), where);
  }
  for (const auto& [key, value] : job.items()) {
    if (key == "id" || key == "task" || key == "candidate") continue;
    std::string close = nearest(key, {"id", "task", "candidate"});
    throw usage_error(cat("unknown member \"", key, "\" of a job"), where,
                      close.empty() ? "" : cat("did you mean ", close, "?"));
  }
  if (!job["id"].is_string() || job["id"].get<std::string>().empty()) {
    throw usage_error("\"id\" of a job must be a text", where);
  }
  Candidate candidate;
  candidate.id = job["id"].get<std::string>();
  fs::path path;
  if (job["task"].is_string()) {
    path = folder / job["task"].get<std::string>();
    if (!fs::exists(path)) throw usage_error(cat("no task file ", path.string()), where);
    candidate.task = task_from_python(path);
  } else {
    std::string code = content(job, "task", "code", folder, where, &path);
    Task task;
    task.id = "inline/" + content_hash(code).substr(0, 12);
    task.source = code;
    Json whole = to_json(task);
    for (const auto& [key, value] : job["task"].items()) {
      if (key == "code") continue;
      const std::vector<std::string> known = {"id", "level", "tiny", "larger"};
      if (std::find(known.begin(), known.end(), key) == known.end()) {
        throw usage_error(cat("unknown member \"", key, "\" of an inline task"), where,
                          "known: code, " + join(known, ", "));
      }
      whole[key] = value;
    }
    candidate.task = task_from_json(whole, where);
  }
  path.clear();
  candidate.text = content(job, "candidate", "text", folder, where, &path);
  candidate.is_code = path.extension() == ".py";
  return candidate;
}

}  // namespace

std::vector<Candidate> load_jobs(const fs::path& jobs) {
  std::vector<Candidate> candidates;
  std::set<std::string> ids;
  for_each_json_line(jobs, [&](int64_t line, const Json& job) {
    std::string where = cat(jobs.string(), ":", line);
    candidates.push_back(read_job(job, jobs.parent_path(), where));
    if (!ids.insert(candidates.back().id).second) {
      throw usage_error(cat("the id \"", candidates.back().id, "\" is used twice"), where);
    }
  });
  return candidates;
}

BatchResult run_batch(Verifier& verifier, const fs::path& jobs, const fs::path& out,
                      const std::function<void(int64_t done, int64_t total)>& progress) {
  std::vector<Candidate> candidates = load_jobs(jobs);
  BatchResult result;
  result.total = static_cast<int64_t>(candidates.size());
  std::map<std::string, bool> known;  // Id -> correct.
  LineFile lines = LineFile::open(out);
  lines.for_each([&](int64_t line, const Json& json) {
    Verdict verdict = verdict_from_json(json, cat(out.string(), ":", line));
    known[verdict.candidate_id] = verdict.correct();
  });
  std::vector<Candidate> open;
  for (Candidate& candidate : candidates) {
    auto it = known.find(candidate.id);
    if (it == known.end()) {
      open.push_back(std::move(candidate));
      continue;
    }
    ++result.skipped;
    result.correct += it->second;
  }
  int64_t done = result.skipped;
  if (progress) progress(done, result.total);
  verifier.verify_each(open, [&](size_t, Verdict verdict) {
    lines.write(to_json(verdict));
    result.correct += verdict.correct();
    if (progress) progress(++done, result.total);
  });
  return result;
}

}  // namespace tritonrl
