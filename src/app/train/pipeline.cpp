// SPDX-License-Identifier: Apache-2.0
#include "app/train/pipeline.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "app/assemble.h"
#include "app/device_memory.h"
#include "app/preflight.h"
#include "app/train/checkpoints.h"
#include "app/train/fine_tuning.h"
#include "app/train/rank_run.h"
#include "app/train/reinforcement.h"
#include "app/train/trained_policy.h"
#include "app/train/training_check.h"
#include "app/train/training_stream.h"
#include "app/train/turn_report.h"
#include "base/files/json_fields.h"
#include "base/log.h"
#include "base/process/interrupt.h"
#include "base/stats.h"
#include "data/tasks/leaks.h"
#include "data/tasks/task_facts.h"
#include "report/report.h"

namespace tritonrl {

namespace {

namespace fs = std::filesystem;

// Tasks of a stream that say which operators it teaches.
constexpr int64_t kProbe = 2000;

class Pipeline {
 public:
  Pipeline(const Config& config, const TrainOptions& options, Ranks& ranks)
      : config_(config),
        ranks_(ranks),
        run_(open_run(config, options.overwrite, ranks)),
        rng_(static_cast<uint64_t>(config.run.seed)),
        checkpoints_(ranks.first() ? config.checkpoint : CheckpointConfig{}, run_),
        policy_(config_, run_, checkpoints_, ranks_, rng_) {
    share_processors(ranks, &config_.verify);
    if (ranks.size() > 1) {
      shared_ = {ranks.rank(), ranks.size(), [this](std::string_view mine) { return ranks_.gather(mine); }};
    }
    set_log_file(run_ / "log.txt");
    Json env = environment();
    env["command"] = options.command_line;
    write_file(run_ / "env.json", env.dump(2) + "\n");
  }

  fs::path run() {
    log_info("run directory: " + run_.path().string());
    checkpoints_.resume();
    if (!config_.run.start_from.empty() && ranks_.first()) take_over(config_.run.start_from);
    share_run(run_, ranks_);
    prepare_tasks();
    compare_tasks();
    if (config_.rl.steps > 0) config_.data.sampler.make(splits_.rl);  // What it cannot sample from ends the run now.
    evaluate("base", 0);
    if (config_.sft.enabled) {
      fine_tune(config_, run_, checkpoints_, policy_, splits_.train, rng_);
      evaluate("sft", 0);
    }
    if (config_.rl.steps > 0) {
      reinforce();
      evaluate("rl", config_.rl.steps);
      if (config_.rl.audit && ranks_.first()) audit();
    }
    if (ranks_.first()) report();
    checkpoints_.finish();
    return run_.path();
  }

 private:
  // The beginning of another run: whatever of it is complete there and not yet here.
  void take_over(const fs::path& other) {
    fs::path state_file = other / "state.json";
    if (!fs::exists(state_file))
      throw usage_error("holds no run", other.string(), "run.start_from names a run directory");
    Json phases = read_json(state_file).value("phases", Json::object());
    const std::pair<const char*, std::vector<std::string>> parts[] = {{"data", {"tasks", kTrainingSetFile}},
                                                                      {"eval/base", {"rollouts/eval_base.jsonl"}},
                                                                      {"sft", {"checkpoints/sft"}},
                                                                      {"eval/sft", {"rollouts/eval_sft.jsonl"}}};
    for (const auto& [phase, files] : parts) {
      if (!phases.contains(phase))
        throw usage_error(cat("lacks the phase ", phase), other.string(), "let that run continue first");
      if (run_.phase_done(phase)) continue;
      for (const std::string& file : files) {
        if (file == kTrainingSetFile && !fs::exists(other / file)) continue;  // A run of before there was one.
        fs::create_directories((run_ / file).parent_path());
        fs::remove_all(run_ / file);
        fs::copy(other / file, run_ / file, fs::copy_options::recursive);
      }
      if (std::string_view(phase).starts_with("eval/")) write_evaluation(phase, 0, load_records(run_ / files[0]));
      Json data = phases[phase];
      data["taken_from"] = other.string();
      run_.mark_done(phase, data);
    }
  }

  // ------------------------------------------------------------------------------------------------------------- tasks

  void prepare_tasks() {
    std::map<std::string, std::vector<Task>*> sets = {
        {"train", &splits_.train}, {"rl", &splits_.rl}, {"heldout", &splits_.heldout}};
    fs::create_directories(run_ / "tasks");
    if (streams()) sets.erase("train");
    auto file = [&](const std::string& name) { return run_ / ("tasks/" + name + ".jsonl"); };
    if (run_.phase_done("data")) {
      for (auto& [name, tasks] : sets) *tasks = load_tasks(file(name));
      training_ = load_training_set(run_.path());
      check_taken_over();
      if (training_) log_info(training_->words());
      return;
    }
    double start = now_s();
    take_tasks();
    log_info(training_->words());
    write_file(run_ / kTrainingSetFile, json_of(*training_).dump(2) + "\n");
    int64_t before = streams() ? config_.data.train.stream : std::ssize(splits_.train), kept = before;
    std::set<std::string> wrong;
    if (streams()) {
      wrong = wrong_solutions(stream_sample(), before);
    } else if (config_.sft.enabled) {
      splits_.train = verified_solutions(splits_.train);
      kept = std::ssize(splits_.train);
    }
    for (auto& [name, tasks] : sets) save_tasks(file(name), *tasks);
    const char* how =
        config_.data.verify_share < 1 ? " solutions for SFT, verified by sample, " : " solutions verified for SFT, ";
    log_info(
        cat("tasks: ", kept, " of ", before, how, splits_.rl.size(), " for RL, ", splits_.heldout.size(), " held out"));
    if (config_.sft.enabled && kept == 0) {
      throw environment_error("no solution passed the verifier", "",
                              "run `tritonrl doctor`; verdicts are in " + (run_ / "verdicts.jsonl").string());
    }
    run_.mark_done(
        "data",
        {{"train", kept}, {"train_before_verification", before}, {"wrong", wrong}, {"seconds", now_s() - start}});
  }

  // Answers are put together by their places in the list of tasks.
  void compare_tasks() {
    if (ranks_.size() == 1) return;
    std::string all;
    for (const auto* tasks : {&splits_.train, &splits_.rl, &splits_.heldout}) {
      for (const Task& task : *tasks) all += cat(task.id, "\n", content_hash(task.source), content_hash(task.solution));
    }
    ranks_.require_same("tasks", content_hash(all), "the files that data and eval name must be the same everywhere");
  }

  bool streams() const { return config_.sft.enabled && config_.data.train.stream > 0; }

  // Of the examples that SFT will meet, the first ones: data.verify_share of them.
  std::vector<const Task*> stream_sample() const {
    auto count =
        static_cast<size_t>(std::ceil(config_.data.verify_share * static_cast<double>(config_.data.train.stream)));
    CHECK(count <= probe_.size()) << "the sample was not drawn";
    std::vector<const Task*> out;
    for (size_t i = 0; i < count; ++i) out.push_back(&probe_[i]);
    return out;
  }

  // What data.exclude asks for must hold of the tasks of another run, too.
  void check_taken_over() const {
    if (config_.data.exclude.empty() || config_.run.start_from.empty()) return;
    bool same =
        training_ && training_->benchmark && training_->benchmark->sha256 == load_exclusion(config_.data.exclude).hash;
    if (same) return;
    throw usage_error(cat("its training tasks were not compared with ", config_.data.exclude), config_.run.start_from,
                      "let that run have the same data.exclude");
  }

  // Fills splits_: from files where they are named, else from the synthesiser. Refuses what leaks.
  void take_tasks() {
    const DataConfig& data = config_.data;
    Exclusion exclusion = load_exclusion(data.exclude);
    bool heldout_from_file = !data.heldout.file.empty() || !config_.eval.tasks.empty();
    SplitConfig split = data.split;
    if (streams()) {
      auto sample = static_cast<int64_t>(std::ceil(data.verify_share * static_cast<double>(data.train.stream)));
      probe_ = first_training_tasks(data, exclusion, std::max(kProbe, sample));
      split.train_level1 = split.train_level2 = 0;
    }
    if (data.train.file.empty() || data.rl.file.empty() || !heldout_from_file) {
      splits_ = graphs::synthesise(data.synth, split, exclusion, probe_);
      check_disjoint(splits_);
    }
    if (!data.train.file.empty()) splits_.train = select_tasks(data.train, "data.train");
    if (!data.rl.file.empty()) splits_.rl = select_tasks(data.rl, "data.rl");
    if (!data.heldout.file.empty()) splits_.heldout = select_tasks(data.heldout, "data.heldout");
    if (!config_.eval.tasks.empty()) {
      splits_.heldout = load_tasks(config_.eval.tasks);
      if (!config_.eval.ids.empty()) splits_.heldout = tasks_of_ids(splits_.heldout, find_data_file(config_.eval.ids));
    }
    if (!data.train.file.empty() || heldout_from_file) check_leaks(splits_.train, "data.train");
    if (!data.rl.file.empty() || heldout_from_file) check_leaks(splits_.rl, "data.rl");
    training_ = check_training(config_, exclusion, &splits_, [this]() -> Verifier& { return verifier(); });
  }

  // Graphs are compared where both tasks were recorded (`data import`, `data label`), sources always.
  void check_leaks(const std::vector<Task>& tasks, const std::string& where) {
    refuse_leaks(tasks, splits_.heldout, config_.data.refuse_leaks, where);
  }

  // Those whose solution the verifier accepts, and those that it is not asked about (data.verify_share).
  std::vector<Task> verified_solutions(const std::vector<Task>& tasks) {
    std::vector<const Task*> asked;
    for (const Task& task : tasks) {
      if (rng_.at("verify_share").at(task.id).uniform() < config_.data.verify_share) asked.push_back(&task);
    }
    std::set<std::string> wrong = wrong_solutions(asked, std::ssize(tasks));
    std::vector<Task> kept;
    for (const Task& task : tasks) {
      if (!wrong.contains(task.id)) kept.push_back(task);
    }
    return kept;
  }

  // Ids of those whose solution the verifier does not accept; says what that means for all `of_all` tasks.
  std::set<std::string> wrong_solutions(const std::vector<const Task*>& asked, int64_t of_all) {
    std::set<std::string> failed;
    std::vector<Verdict> verdicts;
    {
      std::vector<const Task*> mine;
      for (auto i = static_cast<size_t>(ranks_.rank()); i < asked.size(); i += static_cast<size_t>(ranks_.size())) {
        mine.push_back(asked[i]);
      }
      Progress bar("data: verifying solutions", static_cast<int64_t>(mine.size()), "solutions");
      verdicts = verifier().verify_solutions(mine, [&](int64_t done) { bar.update(done); });
    }
    if (interrupted()) throw Interrupted();
    verdicts = shared_.put_together(asked.size(), verdicts);
    for (size_t i = 0; i < asked.size(); ++i) {
      write_verdict(run_, verdicts[i], "data");
      if (verdicts[i].correct()) continue;
      failed.insert(asked[i]->id);
      log_warn(
          cat("solution of ", asked[i]->id, " left out: ", to_string(verdicts[i].outcome), ": ", verdicts[i].reason()));
    }
    if (std::ssize(asked) < of_all) {
      int64_t wrong = 0, of = 0;  // A fault of ours says nothing about a solution.
      for (const Verdict& verdict : verdicts) {
        of += !verdict.is_harness_fault();
        wrong += !verdict.is_harness_fault() && !verdict.correct();
      }
      Interval share = wilson(wrong, of);
      log_info(cat("data: ", wrong, " of ", of, " solutions that were verified are wrong; ", of_all - std::ssize(asked),
                   " others are taught unverified, of which ", fixed(100 * share.low, 1), " to ",
                   fixed(100 * share.high, 1), " % are wrong (95 % interval)"));
    }
    return failed;
  }

  // -------------------------------------------------------------------------------------------------------- evaluation

  void evaluate(const std::string& model, int64_t step) {
    records_.emplace_back(model, evaluated(model, step));
    ResultsRow row = make_row(model, records_.back().second);
    for (const auto& [level, metrics] : row.levels) {
      log_info(cat("  ", model, ", level ", level, ": ", metrics.correct.k, " of ", metrics.correct.n, " correct, ",
                   metrics.compiled.k, " compiled, ", metrics.valid.k, " valid", within_turns(metrics)));
    }
  }

  // `step` = how many RL steps are behind that policy. Phase eval/MODEL.
  std::vector<EvalRecord> evaluated(const std::string& model, int64_t step) {
    std::string phase = "eval/" + model;
    fs::path file = run_ / ("rollouts/eval_" + model + ".jsonl");
    fs::path pending = run_ / ("rollouts/pending_eval_" + model + ".jsonl");
    if (run_.phase_done(phase)) {
      fs::remove(pending);
      return load_records(file);
    }
    policy_.attach(model);
    // Another number of ranks deals out other shares.
    std::string share = ranks_.size() == 1 ? "" : cat(", share ", ranks_.rank(), " of ", ranks_.size());
    RolloutJournal journal(pending, phase + share);
    Rng rng = Rng(static_cast<uint64_t>(config_.eval.seed)).at("eval");
    Rollouts rollouts = with_memory_advice(phase, "policy.slots or eval.sampling.max_new_tokens", [&] {
      Rollouts own = hold_conversations(policy_.get().snapshot(), eval_verifier(), shared_.mine(splits_.heldout),
                                        config_.eval.samples, config_.eval.sampling, rng, eval_turns(config_),
                                        {phase, should_stream(config_.eval.stream, policy_.get()), &journal});
      return shared_.put_together(splits_.heldout, std::move(own));
    });
    for (const Group& group : rollouts.groups) {
      for (const Sample& sample : group.samples) {
        write_verdict(run_, sample.verdict, phase, reward(sample.verdict, config_.reward));
      }
    }
    auto records = records_of(rollouts);
    save_records(file, records);
    ResultsRow row = write_evaluation(phase, step, records);
    int64_t correct = 0, scored = 0;
    for (const auto& [level, metrics] : row.levels) correct += metrics.correct.k, scored += metrics.correct.n;
    run_.mark_done(phase, {{"rollout_seconds", rollouts.times.rollout},
                           {"verify_seconds", rollouts.times.verify},
                           {"verify_alone_seconds", rollouts.times.verify_alone},
                           {"too_long", rollouts.too_long},
                           {"tokens", rollouts.tokens},
                           {"score", {{"correct", correct}, {"scored", scored}}}});
    journal.remove();
    checkpoints_.evaluation_ended();
    return records;
  }

  // Writes the line of steps.jsonl; returns the row of results.json.
  ResultsRow write_evaluation(const std::string& phase, int64_t step, const std::vector<EvalRecord>& records) {
    ResultsRow row = make_row(phase, records);
    Json line = {{"phase", "eval"}, {"unit", phase}, {"step", step}};
    for (const auto& [level, metrics] : row.levels) {
      for (const auto& [name, rate] :
           {std::pair("correct", metrics.correct), std::pair("compiled", metrics.compiled)}) {
        std::string key = cat("level", level, "/", name, "_");
        line.update(
            {{key + "rate", rate.value()}, {key + "low", rate.interval().low}, {key + "high", rate.interval().high}});
      }
    }
    run_.steps().write(line);
    return row;
  }

  // What training accepted, before the full verifier.
  void audit() {
    if (run_.phase_done("audit")) return;
    std::vector<Candidate> candidates;
    std::map<std::string, const Task*> tasks;
    for (const Task& task : splits_.rl) tasks[task.id] = &task;
    for (int64_t step = 1; step <= config_.rl.steps; ++step) {
      for_each_json_line(samples_file(run_, step), [&](int64_t line, const Json& json) {
        if (json.value("outcome", "") != to_string(Outcome::kPass)) return;
        candidates.push_back({cat("audit/", step, "/", line), *tasks.at(json.at("task_id").get<std::string>()),
                              json.at("text").get<std::string>(), false, false});
      });
    }
    int64_t rejected = 0, judged = 0;
    {
      Progress bar("audit", static_cast<int64_t>(candidates.size()), "candidates");
      auto verdicts = eval_verifier().verify(candidates, [&](int64_t done) { bar.update(done); });
      for (const Verdict& verdict : verdicts) {
        write_verdict(run_, verdict, "audit");
        if (verdict.is_harness_fault()) continue;
        ++judged;
        rejected += !verdict.correct();
      }
    }
    if (interrupted()) throw Interrupted();
    log_info(cat("audit: the full verifier rejects ", rejected, " of ", judged, " that training accepted"));
    run_.mark_done("audit", {{"accepted", judged}, {"rejected", rejected}});
  }

  // ---------------------------------------------------------------------------------------------------------- training

  void reinforce() {
    Reinforcement rl(
        config_, run_, checkpoints_, policy_, splits_.rl, rng_.at("rl"), [this]() -> Verifier& { return verifier(); },
        shared_);
    for (int64_t step = 1; step <= config_.rl.steps; ++step) {
      rl.step(step);
      int64_t every = config_.eval.every;
      if (every == 0 || step % every != 0 || step == config_.rl.steps) continue;
      if (!run_.phase_done(cat("eval/rl_", step))) {
        rl.drain();
        evaluated(cat("rl_", step), step);
      }
    }
  }

  // ------------------------------------------------------------------------------------------------------------ report

  void report() {
    std::vector<ResultsRow> rows;
    std::vector<RateDifference> comparisons;
    const TaskOperators operators = operators_by_task(splits_.heldout);
    TaskOperators recorded;
    for (const Task& task : splits_.heldout) {
      if (!task.recorded.operators.empty()) {
        recorded[task.id] = {task.recorded.operators.begin(), task.recorded.operators.end()};
      }
    }
    for (size_t m = 0; m < records_.size(); ++m) {
      rows.push_back(make_row(records_[m].first, records_[m].second, operators));
      if (training_ && !recorded.empty()) split_by_teaching(*training_, recorded, records_[m].second, &rows.back());
      if (m == 0) continue;
      auto more = compare_levels(records_[m - 1].first, records_[m - 1].second, records_[m].first, records_[m].second);
      comparisons.insert(comparisons.end(), more.begin(), more.end());
    }
    Json results = results_to_json(rows, comparisons);
    if (training_) results["training_set"] = training_->words();
    if (config_.checkpoint.keep_best) results["best_checkpoint"] = checkpoints_.best();
    write_file(run_ / "results.json", results.dump(2) + "\n");
    write_file(run_ / "examples.json", examples().dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
    write_report(run_.path());
  }

  // One answer of the last model that passed (level 2 if there is one) and one that failed late rather than early.
  Json examples() const {
    const auto& records = records_.back().second;
    const EvalRecord *passed = nullptr, *failed = nullptr;
    for (const EvalRecord& r : records) {
      if (r.verdict.correct()) {
        if (!passed || r.level > passed->level) passed = &r;
      } else if (!r.verdict.is_harness_fault()) {
        if (!failed || r.verdict.stopped_at > failed->verdict.stopped_at) failed = &r;
      }
    }
    Json out = Json::object();
    auto add = [&](const char* key, const EvalRecord* record) {
      if (!record) return;
      out[key] = to_json(record->verdict);
      for (const Task& task : splits_.heldout) {
        if (task.id == record->task_id) out[key]["task_source"] = task.source;
      }
    };
    add("passed", passed);
    add("failed", failed);
    return out;
  }

  // One verifier is open at a time: two judges would share a GPU's memory.
  Verifier& verifier(bool full = false) {
    full = full && config_.eval.verifier == EvalVerifier::kFull;
    if (!verifier_ || full != verifier_is_full_) {
      verifier_.reset();
      verifier_ = Verifier::open(config_.verify, make_verify_seams(full ? with_every_extension(config_) : config_));
      verifier_is_full_ = full;
    }
    return *verifier_;
  }
  Verifier& eval_verifier() { return verifier(/*full=*/true); }

  Config config_;
  Ranks& ranks_;
  SharedWork shared_;
  RunDir run_;
  Rng rng_;
  Checkpoints checkpoints_;
  Splits splits_;
  std::vector<Task> probe_;  // The first tasks of the stream that SFT is taught from.
  std::optional<TrainingSet> training_;
  TrainedPolicy policy_;
  std::unique_ptr<Verifier> verifier_;
  bool verifier_is_full_ = false;
  std::vector<std::pair<std::string, std::vector<EvalRecord>>> records_;
};

}  // namespace

fs::path run_training(const Config& config, const TrainOptions& options) {
  Ranks::Place place = Ranks::place();
  take_place(place, config);
  check_can_start(config);
  auto ranks = Ranks::join(place);
  return Pipeline(config, options, *ranks).run();
}

}  // namespace tritonrl
