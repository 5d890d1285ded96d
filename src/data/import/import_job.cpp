// SPDX-License-Identifier: Apache-2.0
#include "data/import/import_job.h"

#include <set>

#include "base/error.h"
#include "base/files/line_file.h"
#include "base/process/interrupt.h"
#include "base/text.h"

namespace tritonrl {
namespace {

namespace fs = std::filesystem;

fs::path with(const fs::path& path, const char* suffix) {
  fs::path out = path;
  out += suffix;
  return out;
}

class Job {
 public:
  Job(const ImportOptions& options)
      : out_(options.out),
        rejected_(rejected_file(options.out)),
        part_(with(out_, ".part")),
        rejected_part_(with(rejected_, ".part")),
        state_(with(out_, ".state")),
        identity_(content_hash(options.identity)) {
    if (options.overwrite) {
      for (const fs::path& path : {part_, rejected_part_, state_}) fs::remove(path);
    } else if (fs::exists(out_)) {
      throw usage_error("is there already", out_.string(), "name another file, or add --overwrite");
    }
  }

  // Takes up what an earlier start left.
  void resume(ImportCounts* counts) {
    if (!fs::exists(state_)) {
      fs::remove(part_);
      fs::remove(rejected_part_);
      return;
    }
    Json state = read_json(state_);
    try {
      if (state.at("identity") != identity_) {
        throw usage_error("holds the state of another import", state_.string(),
                          "give the arguments it was started with, or add --overwrite");
      }
      counts->rows = counts->resumed_at = state.at("rows");
      counts->kept = state.at("kept");
      counts->kinds = state.at("kinds").get<std::map<std::string, int64_t>>();
      rejected_lines_ = state.at("rejected");
    } catch (const Json::exception&) {
      throw usage_error("is no state of an import", state_.string(), "add --overwrite to start anew");
    }
    trim(part_, counts->kept);
    trim(rejected_part_, rejected_lines_);
    for_each_json_line(part_, [&](int64_t, const Json& json) {
      Task task;
      task.id = json.value("id", "");
      task.source = json.value("source", "");
      task.solution = json.value("solution", "");
      remember(task, "");
    });
  }

  // "" or why this task is one that was seen before. `where` names it for those that come later.
  std::string remember(const Task& task, const std::string& where) {
    if (!ids_.insert(content_hash(task.id)).second) return cat("the id ", task.id, " was used before");
    auto [it, fresh] = texts_.try_emplace(content_hash(task.source + '\0' + task.solution), where);
    return fresh ? "" : cat("the same source and solution as ", it->second.empty() ? "an earlier row" : it->second);
  }
  bool open() {
    tasks_writer_.emplace(LineFile::open(part_));
    rejected_writer_.emplace(LineFile::open(rejected_part_));
    return true;
  }
  void keep(const Task& task) { tasks_writer_->write(to_json(task)); }
  void reject(int64_t row, const Converted& why) {
    ++rejected_lines_;
    rejected_writer_->write({{"row", row}, {"id", why.id}, {"kind", why.kind}, {"reason", why.reason}});
  }
  void save(const ImportCounts& counts) {
    write_file(state_, Json({{"identity", identity_},
                             {"rows", counts.rows},
                             {"kept", counts.kept},
                             {"kinds", counts.kinds},
                             {"rejected", rejected_lines_}})
                           .dump());
  }
  void finish() {
    tasks_writer_.reset();
    rejected_writer_.reset();
    fs::rename(rejected_part_, rejected_);
    fs::rename(part_, out_);
    fs::remove(state_);
  }

 private:
  static void trim(const fs::path& path, int64_t lines) {
    if (whole_lines(path) < lines) {
      throw usage_error("is shorter than the import's state says", path.string(), "add --overwrite to start anew");
    }
    LineFile::open(path).keep(lines);
  }

  fs::path out_, rejected_, part_, rejected_part_, state_;
  std::string identity_;
  std::set<std::string> ids_;
  std::map<std::string, std::string> texts_;  // Hash -> id of the first task that has it.
  std::optional<LineFile> tasks_writer_, rejected_writer_;
  int64_t rejected_lines_ = 0;
};

}  // namespace

fs::path rejected_file(const fs::path& out) {
  fs::path path = out;
  return path.replace_extension(".rejected.jsonl");
}

ImportCounts run_import(RowSource& rows, const Converter& convert, const ImportJudge& judge,
                        const ImportOptions& options, const std::function<void(const ImportCounts&)>& progress) {
  if (options.out.extension() != ".jsonl") {
    throw usage_error("the output must end in .jsonl", options.out.string());
  }
  Job job(options);
  ImportCounts counts;
  job.resume(&counts);
  job.open();
  Row row;
  for (int64_t i = 0; i < counts.resumed_at; ++i) {
    if (!rows.next(&row)) break;
  }
  for (bool more = true; more;) {
    std::vector<Converted> window;
    std::vector<int64_t> numbers;
    while (window.size() < options.window && (more = rows.next(&row))) {
      numbers.push_back(row.number);
      Converted converted;
      if (row.kind.empty()) {
        converted = convert(row);
      } else {
        converted.kind = row.kind;
        converted.reason = row.problem;
      }
      if (converted.task) {
        std::string again = job.remember(*converted.task, converted.id);
        if (!again.empty()) {
          converted.task.reset();
          converted.kind = "duplicate";
          converted.reason = again;
        }
      }
      window.push_back(std::move(converted));
    }
    if (judge && !window.empty()) judge(window);
    if (interrupted()) throw Interrupted();
    for (size_t i = 0; i < window.size(); ++i) {
      ++counts.rows;
      if (window[i].kind.empty()) {
        ++counts.kept;
        job.keep(*window[i].task);
      } else {
        ++counts.kinds[window[i].kind];
        job.reject(numbers[i], window[i]);
      }
    }
    job.save(counts);
    if (progress) progress(counts);
  }
  job.finish();
  return counts;
}

}  // namespace tritonrl
