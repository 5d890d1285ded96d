// SPDX-License-Identifier: Apache-2.0
#include "verify/batch.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/files/line_file.h"
#include "base/log.h"
#include "base/text.h"
#include "data/tasks/task.h"
#include "verify/extract.h"
#include "verify/syntax.h"

namespace tritonrl {
namespace {

namespace fs = std::filesystem;

void read_candidate(const Json& value, const fs::path& folder, const std::string& where, Candidate* candidate) {
  if (value.is_string()) {
    fs::path path = folder / value.get<std::string>();
    candidate->is_code = path.extension() == ".py";
    try {
      candidate->text = read_file(path);
    } catch (const Error& error) {
      throw usage_error(cat("cannot read the candidate: ", error.message()), where);
    }
    return;
  }
  bool one = value.is_object() && value.size() == 1 && value.begin().value().is_string();
  if (!one || (!value.contains("code") && !value.contains("text"))) {
    throw usage_error(
        R"("candidate" must be a path, {"code": text of a Python file} or {"text": answer with a fenced block})",
        where);
  }
  candidate->is_code = value.contains("code");
  candidate->text = value.begin().value().get<std::string>();
}

bool is_unfenced(const Candidate& candidate) {
  return !candidate.is_code && extract_code(candidate.text).why == Rule::kNoCodeBlock &&
         candidate.text.find("class ModelNew") != std::string::npos && check_syntax(candidate.text).ok;
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
  if (job["task"].is_string()) {
    fs::path path = folder / job["task"].get<std::string>();
    if (!fs::exists(path)) throw usage_error(cat("no task file ", path.string()), where);
    candidate.task = task_from_python(path);
  } else {
    bool has_code = job["task"].is_object() && job["task"].contains("code") && job["task"]["code"].is_string();
    if (!has_code) throw usage_error(R"("task" must be a path or {"code": text})", where);
    std::string code = job["task"]["code"].get<std::string>();
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
  read_candidate(job["candidate"], folder, where, &candidate);
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
  result.unfenced = std::count_if(candidates.begin(), candidates.end(), is_unfenced);
  if (result.unfenced > 0) {
    log_warn(cat(result.unfenced, " of ", result.total,
                 " answers are Python files without a fenced block, and so no_code",
                 R"( (a file's text is given as {"code": ...}, an answer as {"text": ...}))"));
  }
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
