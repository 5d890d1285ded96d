// SPDX-License-Identifier: Apache-2.0
#include "app/commands/synth_run.h"

#include <algorithm>
#include <map>
#include <optional>
#include <ostream>

#include "base/files/line_file.h"
#include "base/log.h"
#include "base/parallel.h"
#include "base/process/interrupt.h"
#include "verify/verifier.h"

namespace tritonrl {

namespace {

namespace fs = std::filesystem;

constexpr int64_t kChunk = 256;  // Tasks verified together and then written.
constexpr int64_t kLeastChunk = 16;
constexpr int64_t kBatch = 4096;             // Tasks written together that are not verified.
constexpr int64_t kTasksPerVerifier = 2048;  // A verifier remembers every reference's answers.
constexpr size_t kMessages = 3;              // Shown for each outcome.

std::string hash_in(const Json& line, const fs::path& path) {
  auto it = line.find("graph_hash");
  if (it == line.end() || !it->is_string()) throw usage_error("a line has no graph_hash", path.string());
  return it->get<std::string>();
}

[[noreturn]] void another_configuration(const fs::path& path) {
  throw usage_error("the unfinished file comes from another configuration", path.string(),
                    "delete it, or give the configuration it was begun with");
}

int64_t solved_in(const fs::path& verdicts) {
  int64_t solved = 0;
  if (!fs::exists(verdicts)) return solved;
  for_each_json_line(verdicts, [&](int64_t, const Json& json) {
    solved += json.value("kept", false) && json.value("has_solution", false);
  });
  return solved;
}

// What is verified here was not made to deceive: inputs that follow from the seed make the same tasks every time.
VerifyConfig of_seed(VerifyConfig verify, int64_t seed) {
  if (verify.seed == 0) verify.seed = (int64_t{1} << 32) + static_cast<int64_t>(static_cast<uint64_t>(seed) >> 2);
  return verify;
}

class SynthRun {
 public:
  SynthRun(const graphs::SynthConfig& config, const VerifyConfig& verify, const SynthRunOptions& options,
           std::ostream& say)
      : config_(config),
        verify_(of_seed(verify, config.seed)),
        options_(options),
        say_(say),
        stream_(config, options.exclusion),
        partial_(options.out),
        verdicts_(options.out) {
    partial_ += ".partial";
    verdicts_ += ".verdicts.jsonl";
  }

  void run() {
    if (options_.solved < 0 || (options_.solved == 0 && options_.count < 1)) {
      throw usage_error("--count and --solved must be at least 1");
    }
    if (!options_.out.parent_path().empty()) make_output_folder(options_.out.parent_path());
    if (fs::exists(options_.out) && !fs::exists(partial_)) {
      bool whole = options_.solved > 0 ? solved_in(verdicts_) >= options_.solved
                   : options_.verify   ? whole_lines(verdicts_) >= options_.count
                                       : whole_lines(options_.out) >= options_.count;
      if (whole) {
        say_ << options_.out.string() << " is there already\n";
        return;
      }
      fs::rename(options_.out, partial_);  // More of the same.
    }
    options_.verify ? verified() : plain();
    fs::rename(partial_, options_.out);
  }

 private:
  void plain() {
    LineFile out = LineFile::open(partial_);
    const int64_t there = out.lines();
    out.for_each([&](int64_t line, const Json& json) {
      bool check = line == 1 || line == there;  // The rest follows from these.
      if (check && to_json(stream_.next()) != json) another_configuration(partial_);
      if (!check) stream_.skip(hash_in(json, partial_), json.value("level", 1));
    });
    Progress bar("synth", options_.count, "tasks", stream_.position());
    double start = now_s();
    int64_t covered = 0;
    while (stream_.position() < options_.count) {
      std::string lines;
      for (const Task& task : stream_.next(std::min(kBatch, options_.count - stream_.position()))) {
        covered += !task.solution.empty();
        lines += json_line(to_json(task)) + "\n";
      }
      out.write_lines(lines);
      bar.update(stream_.position());
      if (interrupted()) throw Interrupted();
    }
    int64_t made = options_.count - there;
    double seconds = now_s() - start;
    say_ << options_.count << " tasks in " << options_.out.string() << "; " << made << " made now in "
         << human_seconds(seconds) << " (" << fixed(static_cast<double>(made) / std::max(seconds, 1e-9), 0)
         << " a second), " << covered << " of them with a solution (not verified)\n";
  }

  // ------------------------------------------------------------------------------------------------------ verification

  struct Judged {
    bool kept = false;
    std::string outcome, stage, message;
    double seconds = 0;
  };

  void verified() {
    LineFile tasks = LineFile::open(partial_), verdicts = LineFile::open(verdicts_);
    resume(tasks, verdicts);
    int64_t solved = solved_in(verdicts_);
    bool by_solved = options_.solved > 0;
    auto reached = [&] { return by_solved ? solved : stream_.position(); };
    const int64_t goal = by_solved ? options_.solved : options_.count;
    Progress bar("synth", goal, by_solved ? "solved tasks" : "tasks", reached());
    double making = 0, linting = 0, verifying = 0;
    while (reached() < goal) {
      double start = now_s();
      int64_t left = goal - reached(), size = by_solved ? std::max(left + left / 4, kLeastChunk) : left;
      std::vector<Task> chunk = stream_.next(std::min(size, kChunk));
      making += now_s() - start;
      open_verifier();
      std::vector<Judged> judged(chunk.size());
      start = now_s();
      lint(chunk, judged);
      linting += now_s() - start;
      start = now_s();
      judge_solutions(chunk, judged);
      verifying += now_s() - start;
      if (interrupted()) throw Interrupted();
      std::string task_lines, verdict_lines;
      for (size_t i = 0; i < chunk.size(); ++i) {
        solved += judged[i].kept && !chunk[i].solution.empty();
        if (judged[i].kept) task_lines += json_line(to_json(chunk[i])) + "\n";
        verdict_lines += json_line({{"id", chunk[i].id},
                                    {"name", chunk[i].name},
                                    {"graph_hash", chunk[i].graph_hash},
                                    {"level", chunk[i].level},
                                    {"has_solution", !chunk[i].solution.empty()},
                                    {"kept", judged[i].kept},
                                    {"outcome", judged[i].outcome},
                                    {"stage", judged[i].stage},
                                    {"message", judged[i].message},
                                    {"seconds", judged[i].seconds}}) +
                         "\n";
      }
      tasks.write_lines(task_lines);  // First: a resumed run cuts what no verdict speaks of.
      verdicts.write_lines(verdict_lines);
      bar.update(reached());
    }
    say_ << "time now: making " << human_seconds(making) << ", references " << human_seconds(linting) << ", solutions "
         << human_seconds(verifying) << "\n";
    summary();
  }

  void resume(LineFile& tasks, const LineFile& verdicts) {
    int64_t there = verdicts.lines(), kept = 0;
    verdicts.for_each([&](int64_t line, const Json& json) {
      std::string hash = hash_in(json, verdicts_);
      if (line == 1 || line == there) {
        if (stream_.next().graph_hash != hash) another_configuration(verdicts_);
      } else {
        stream_.skip(hash, json.value("level", 1));
      }
      kept += json.value("kept", false);
    });
    if (tasks.lines() < kept) another_configuration(partial_);
    tasks.keep(kept);
  }

  void open_verifier() {
    if (verifier_ && ++chunks_ % (kTasksPerVerifier / kChunk) != 0) return;
    verifier_.reset();
    verifier_ = Verifier::open(verify_);
  }

  // References that fail, or that a wrong answer would pass.
  void lint(const std::vector<Task>& chunk, std::vector<Judged>& judged) {
    parallel_for(chunk.size(), verifier_->workers(), [&](size_t i) {
      if (interrupted()) return;
      double start = now_s();
      try {
        judged[i].message = verifier_->lint(chunk[i]);
        judged[i].outcome = judged[i].message.empty() ? "pass" : "bad_reference";
      } catch (const Error& e) {
        judged[i].outcome = "harness_fault";
        judged[i].message = e.what();
      }
      judged[i].stage = "reference";
      judged[i].kept = judged[i].outcome == "pass";
      judged[i].seconds = now_s() - start;
    });
  }

  void judge_solutions(const std::vector<Task>& chunk, std::vector<Judged>& judged) {
    std::vector<const Task*> tasks;
    std::vector<size_t> places;
    for (size_t i = 0; i < chunk.size(); ++i) {
      if (!judged[i].kept || chunk[i].solution.empty()) continue;
      tasks.push_back(&chunk[i]);
      places.push_back(i);
    }
    auto verdicts = verifier_->verify_solutions(tasks);
    for (size_t c = 0; c < verdicts.size(); ++c) {
      Judged& j = judged[places[c]];
      j.outcome = to_string(verdicts[c].outcome);
      j.stage = to_string(verdicts[c].stopped_at);
      j.message = verdicts[c].reason();
      j.kept = verdicts[c].correct();
      for (const StageResult& stage : verdicts[c].stages) j.seconds += stage.seconds;
    }
  }

  void summary() const {
    int64_t made = 0, kept = 0, recorded = 0, references = 0, with_solution = 0, passed = 0;
    std::map<std::string, int64_t> counts;
    std::map<std::string, std::vector<std::string>> messages;
    for_each_json_line(verdicts_, [&](int64_t, const Json& json) {
      ++made;
      bool good = json.value("kept", false), solution = json.value("has_solution", false);
      std::string outcome = json.value("outcome", ""), why = json.value("message", "");
      recorded += outcome != "bad_reference" || why.rfind("unrecordable", 0) != 0;
      kept += good;
      references += outcome != "bad_reference" && outcome != "harness_fault";
      if (outcome != "bad_reference") with_solution += solution, passed += solution && good;
      if (good) return;
      std::string cause = outcome == "bad_reference" ? cat(outcome, ", ", why.substr(0, why.find(':'))) : outcome;
      ++counts[cause];
      auto& shown = messages[cause];
      if (shown.size() < kMessages) {
        shown.push_back(json.value("id", "") + " " + json.value("name", "") + ": " + why.substr(0, why.find('\n')));
      }
    });
    auto share = [](int64_t k, int64_t n) {
      return cat(k, " of ", n,
                 n ? cat(" (", fixed(100.0 * static_cast<double>(k) / static_cast<double>(n), 1), " %)") : "");
    };
    say_ << "kept " << share(kept, made) << " tasks in " << options_.out.string()
         << "\nreferences that record: " << share(recorded, made) << "; of use: " << share(references, made)
         << "; solutions that pass: " << share(passed, with_solution) << "\n";
    for (const auto& [cause, count] : counts) {
      say_ << "  " << cause << ": " << count << "\n";
      for (const std::string& message : messages[cause]) say_ << "    " << message << "\n";
    }
  }

  const graphs::SynthConfig& config_;
  const VerifyConfig verify_;
  const SynthRunOptions& options_;
  std::ostream& say_;
  graphs::GraphStream stream_;
  fs::path partial_, verdicts_;
  std::unique_ptr<Verifier> verifier_;
  int64_t chunks_ = 0;
};

}  // namespace

void make_output_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw environment_error("cannot create the folder: " + error.message(), folder.string());
}

void run_synth(const graphs::SynthConfig& config, const VerifyConfig& verify, const SynthRunOptions& options,
               std::ostream& say) {
  SynthRun(config, verify, options, say).run();
}

}  // namespace tritonrl
