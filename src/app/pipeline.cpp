// SPDX-License-Identifier: Apache-2.0
#include "app/pipeline.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "app/assemble.h"
#include "app/checkpoints.h"
#include "app/device_memory.h"
#include "app/preflight.h"
#include "app/step_metrics.h"
#include "app/turn_report.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/leaks.h"
#include "eval/conversation.h"
#include "report/report.h"
#include "train/code_tokens.h"
#include "train/credit/returns.h"
#include "train/kl_reward.h"

namespace tritonrl {

namespace {

namespace fs = std::filesystem;

class Pipeline {
 public:
  Pipeline(const Config& config, const TrainOptions& options)
      : config_(config),
        run_(RunDir::open(fs::path(config.run.folder) / config.run.name, to_yaml(config), options.overwrite)),
        rng_(static_cast<uint64_t>(config.run.seed)),
        checkpoints_(config.checkpoint, run_) {
    set_log_file(run_ / "log.txt");
    Json env = environment();
    env["command"] = options.command_line;
    write_file(run_ / "env.json", env.dump(2) + "\n");
  }

  fs::path run() {
    log_info("run directory: " + run_.path().string());
    checkpoints_.resume();
    if (!config_.run.start_from.empty()) take_over(config_.run.start_from);
    prepare_tasks();
    evaluate("base");
    if (config_.sft.enabled) {
      supervised();
      evaluate("sft");
    }
    if (config_.rl.steps > 0) {
      auto sampler = make_task_sampler(config_.data.sampler, splits_.rl);
      auto credit = make_credit(config_.rl);
      for (int64_t step = 1; step <= config_.rl.steps; ++step) reinforce(step, *sampler, *credit);
      evaluate("rl");
      if (config_.rl.audit) audit();
    }
    report();
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
    const std::pair<const char*, std::vector<std::string>> parts[] = {{"data", {"tasks"}},
                                                                      {"eval/base", {"rollouts/eval_base.jsonl"}},
                                                                      {"sft", {"checkpoints/sft"}},
                                                                      {"eval/sft", {"rollouts/eval_sft.jsonl"}}};
    for (const auto& [phase, files] : parts) {
      if (!phases.contains(phase))
        throw usage_error(cat("lacks the phase ", phase), other.string(), "let that run go on first");
      if (run_.phase_done(phase)) continue;
      for (const std::string& file : files) {
        fs::create_directories((run_ / file).parent_path());
        fs::remove_all(run_ / file);
        fs::copy(other / file, run_ / file, fs::copy_options::recursive);
      }
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
    auto file = [&](const std::string& name) { return run_ / ("tasks/" + name + ".jsonl"); };
    if (run_.phase_done("data")) {
      for (auto& [name, tasks] : sets) *tasks = load_tasks(file(name));
      return;
    }
    double start = now_s();
    take_tasks();
    int64_t before = static_cast<int64_t>(splits_.train.size());
    if (config_.sft.enabled) splits_.train = verified_solutions(splits_.train);
    for (auto& [name, tasks] : sets) save_tasks(file(name), *tasks);
    auto kept = static_cast<int64_t>(splits_.train.size());
    log_info(cat("tasks: ", kept, " of ", before, " solutions verified for SFT, ", splits_.rl.size(), " for RL, ",
                 splits_.heldout.size(), " held out"));
    if (config_.sft.enabled && kept == 0) {
      throw environment_error("no solution passed the verifier", "",
                              "run `tritonrl doctor`; verdicts are in " + (run_ / "verdicts.jsonl").string());
    }
    run_.mark_done("data", {{"train", kept}, {"train_before_verification", before}, {"seconds", now_s() - start}});
  }

  // Fills splits_: from files where they are named, else from the synthesiser. Refuses what leaks.
  void take_tasks() {
    const DataConfig& data = config_.data;
    bool heldout_from_file = !data.heldout.file.empty() || !config_.eval.tasks.empty();
    if (data.train.file.empty() || data.rl.file.empty() || !heldout_from_file) {
      splits_ = make_splits(synthesise(data.synth, data.synth_level1, data.synth_level2), data.split);
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
  }

  // Graphs are compared where both tasks were recorded (`data import`, `data label`), sources always.
  void check_leaks(const std::vector<Task>& tasks, const std::string& where) {
    refuse_leaks(tasks, splits_.heldout, config_.data.refuse_leaks, where);
  }

  // Those whose solution the verifier accepts.
  std::vector<Task> verified_solutions(const std::vector<Task>& tasks) {
    std::vector<Candidate> candidates;
    for (const Task& task : tasks) {
      Candidate candidate;
      candidate.id = task.id;
      candidate.task = task;
      candidate.text = task.solution;
      candidate.is_code = true;
      candidate.timed = false;
      candidates.push_back(std::move(candidate));
    }
    std::vector<Verdict> verdicts;
    {
      Progress bar("data: verifying solutions", static_cast<int64_t>(candidates.size()), "solutions");
      verdicts = verifier().verify(candidates, [&](int64_t done) { bar.update(done); });
    }
    if (interrupted()) throw Interrupted();
    std::vector<Task> kept;
    for (size_t i = 0; i < tasks.size(); ++i) {
      record(verdicts[i], "data", std::nullopt);
      if (verdicts[i].correct()) {
        kept.push_back(tasks[i]);
      } else {
        log_warn(cat("solution of ", tasks[i].id, " left out: ", to_string(verdicts[i].outcome), ": ",
                     verdicts[i].reason()));
      }
    }
    return kept;
  }

  // -------------------------------------------------------------------------------------------------------- evaluation

  void evaluate(const std::string& model) {
    std::string phase = "eval/" + model;
    fs::path file = run_ / ("rollouts/eval_" + model + ".jsonl");
    if (!run_.phase_done(phase)) {
      attach_adapter(model);
      Rng rng = Rng(static_cast<uint64_t>(config_.eval.seed)).at("eval");
      Verified verified = with_memory_advice(phase, "policy.slots or eval.sampling.max_new_tokens", [&] {
        return hold_conversations(policy(), judge_of_results(), splits_.heldout, config_.eval.samples,
                                  config_.eval.sampling, rng, phase, eval_turns(config_),
                                  should_stream(config_.eval.stream, policy()));
      });
      for (const auto& group : verified.verdicts) {
        for (const Verdict& verdict : group) record(verdict, phase, reward(verdict, config_.reward));
      }
      auto records = records_of(verified);
      save_records(file, records);
      run_.mark_done(phase, {{"rollout_seconds", verified.times.rollout},
                             {"verify_seconds", verified.times.verify},
                             {"verify_alone_seconds", verified.times.verify_alone},
                             {"too_long", verified.too_long},
                             {"tokens", verified.tokens}});
    }
    records_.emplace_back(model, load_records(file));
    ResultsRow row = make_row(model, records_.back().second);
    for (const auto& [level, metrics] : row.levels) {
      log_info(cat("  ", model, ", level ", level, ": ", metrics.correct.k, " of ", metrics.correct.n, " correct, ",
                   metrics.compiled.k, " compiled, ", metrics.valid.k, " valid", within_turns(metrics)));
    }
  }

  // What training accepted, before the full verifier.
  void audit() {
    if (run_.phase_done("audit")) return;
    std::vector<Candidate> candidates;
    std::map<std::string, const Task*> tasks;
    for (const Task& task : splits_.rl) tasks[task.id] = &task;
    for (int64_t step = 1; step <= config_.rl.steps; ++step) {
      for_each_json_line(rollouts_file(step), [&](int64_t line, const Json& json) {
        if (json.value("outcome", "") != to_string(Outcome::kPass)) return;
        candidates.push_back({cat("audit/", step, "/", line), *tasks.at(json.at("task_id").get<std::string>()),
                              json.at("text").get<std::string>(), false, false});
      });
    }
    int64_t rejected = 0, judged = 0;
    {
      Progress bar("audit", static_cast<int64_t>(candidates.size()), "candidates");
      auto verdicts = judge_of_results().verify(candidates, [&](int64_t done) { bar.update(done); });
      for (const Verdict& verdict : verdicts) {
        record(verdict, "audit", std::nullopt);
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

  // In parts, each with its checkpoint, so that a run that was stopped goes on within it.
  void supervised() {
    if (run_.phase_done("sft")) return checkpoints_.remove(kSftPart);
    int64_t part = 0;
    while (run_.phase_done(sft_part(part + 1))) ++part;
    Json so_far = part > 0 ? run_.phase_data(sft_part(part)) : Json::object();
    if (!so_far.contains("whole")) so_far = fine_tune(part, so_far);
    Json summary = so_far.at("whole");
    run_.mark_done("sft", summary);
    checkpoints_.remove(kSftPart);
    checkpoints_.done(0);
  }

  static std::string sft_part(int64_t part) { return cat("sft/part_", part); }
  static constexpr const char* kSftPart = "sft_part_";
  static std::string sft_checkpoint(int64_t part) { return cat(kSftPart, part); }

  // Goes on behind `part` parts; `so_far` is what the last of them noted. Returns what the last one of all notes.
  Json fine_tune(int64_t part, Json so_far) {
    policy().set_adapter(part > 0 ? load_checkpoint(sft_checkpoint(part))
                                  : LoraAdapter::create(policy().weights(), config_.lora, rng_.at("lora")));
    policy().adapter().config.dropout = config_.lora.dropout;
    AdamW optimizer(config_.sft.optimizer, policy().adapter().parameters());
    if (part > 0) {
      optimizer.load((checkpoints_.path(sft_checkpoint(part)) / "optimizer.safetensors").string());
      log_info(cat("sft: goes on behind update ", so_far.at("steps").get<int64_t>()));
    }
    std::vector<TrainExample> examples;
    for (const Task& task : splits_.train) {
      EncodedExample encoded = policy().encode_example(policy().encode_prompt(task), answer_for(task));
      examples.push_back(supervised_example(std::move(encoded.tokens), encoded.answer_begin, task.id));
    }
    double before = so_far.value("seconds", 0.0), start = now_s();
    auto after = [&](const UpdateReport& r) {
      if (r.step == 1) so_far["first_loss"] = r.loss;
      so_far["tokens"] = so_far.value("tokens", int64_t{0}) + r.tokens;
      so_far["steps"] = r.step;
      so_far["last_loss"] = r.loss;
      so_far["seconds"] = before + now_s() - start;
      int64_t every = config_.checkpoint.every_updates;
      if (!interrupted() && (every == 0 || r.step % every != 0 || r.step == r.steps)) return;
      ++part;
      save_checkpoint(sft_checkpoint(part), &optimizer);
      run_.mark_done(sft_part(part), so_far);
      checkpoints_.remove(kSftPart, sft_checkpoint(part));
    };
    SftPart how{&optimizer, so_far.value("steps", int64_t{0}), &part, after};
    TrainSummary summary = train_examples(examples, config_.sft, rng_.at("sft"), "sft", "sft", nullptr, &how);
    summary.steps = so_far.value("steps", summary.steps);
    summary.first_loss = so_far.value("first_loss", summary.first_loss);
    summary.last_loss = so_far.value("last_loss", summary.last_loss);
    summary.tokens = so_far.value("tokens", summary.tokens);
    summary.seconds = so_far.value("seconds", summary.seconds);
    save_checkpoint("sft");
    so_far["whole"] = to_json(summary);
    run_.mark_done(sft_part(part + 1), so_far);
    return so_far;
  }

  // What the rollouts of one step brought.
  struct Experience {
    Verified verified;
    Scores scores;                 // Each answer by its own verdict.
    Scores credited;               // What credit is given: for advantages the returns (train/credit/returns.h).
    std::vector<bool> trained_on;  // One a group; the others' rewards are all equal (rl.resample_rounds).
    std::vector<TaskResult> results;
    std::map<std::string, int64_t> outcomes;
    int64_t rounds = 0;
  };

  Judged judge(const Verdict& verdict, const Rollout& rollout) {
    Judged judged{reward(verdict, config_.reward), verdict.correct()};
    judged.turn = rollout.turn;
    if (!judged.reward) return judged;
    judged.noise = reward_noise(verdict, config_.reward);
    if (config_.reward.shape == "hierarchical" && has_advantages(config_.rl)) {
      RewardParts parts = *reward_parts(verdict, config_.reward);
      judged.reward = parts.code;
      judged.plan = parts.plan;
      RewardConfig speed = config_.reward;
      speed.shape = "speed";
      judged.plan_noise = reward_noise(verdict, speed);
      judged.noise = 0;
      judged.code = code_tokens(policy().tokenizer(), rollout);
    }
    if (config_.rl.overlong == "penalty") {
      double penalty = overlong_penalty(static_cast<int64_t>(rollout.tokens.size()), rollout.finished,
                                        config_.rl.sampling.max_new_tokens, config_.rl.overlong_tokens);
      *judged.reward += penalty;
      judged.plan += penalty;
    }
    return judged;
  }

  Experience gather(TaskSampler& sampler, const Rng& rng, const std::string& phase) {
    Experience all;
    int64_t wanted = config_.rl.tasks_per_step;
    TurnRules turns = rl_turns(config_);
    while (wanted > 0 && all.rounds <= config_.rl.resample_rounds) {
      std::vector<Task> tasks;
      for (const Task* task : sampler.next(wanted)) tasks.push_back(*task);
      Rng draws = all.rounds == 0 ? rng : rng.at(static_cast<uint64_t>(all.rounds));
      Verified verified = hold_conversations(policy(), verifier(), tasks, config_.rl.samples, config_.rl.sampling,
                                             draws, phase, turns, should_stream(config_.rl.stream, policy()));
      std::vector<TaskResult> results;
      for (size_t g = 0; g < verified.groups.size(); ++g) {
        TaskResult result{verified.groups[g].task.id, verified.groups[g].task.level, 0, 0};
        all.scores.emplace_back();
        for (size_t r = 0; r < verified.verdicts[g].size(); ++r) {
          const Verdict& verdict = verified.verdicts[g][r];
          Judged judged = judge(verdict, verified.groups[g].rollouts[r]);
          record(verdict, phase, judged.reward);
          ++all.outcomes[to_string(verdict.outcome)];
          result.samples += judged.turn == 1 && judged.reward;  // What a task asks of the policy is its first answer.
          result.correct += judged.turn == 1 && judged.reward && judged.correct;
          all.scores.back().push_back(std::move(judged));
        }
        results.push_back(result);
        all.credited.push_back(has_advantages(config_.rl)
                                   ? with_returns(verified.groups[g], all.scores.back(), config_.rl.gamma)
                                   : all.scores.back());
        bool useful = config_.rl.resample_rounds == 0 || !teaches_nothing(all.credited.back(), config_.rl.advantage);
        all.trained_on.push_back(useful);
        wanted -= useful;
      }
      sampler.observe(results);
      all.results.insert(all.results.end(), results.begin(), results.end());
      all.verified.times.add(verified.times);
      all.verified.tokens += verified.tokens;
      all.verified.too_long += verified.too_long;
      std::move(verified.groups.begin(), verified.groups.end(), std::back_inserter(all.verified.groups));
      std::move(verified.verdicts.begin(), verified.verdicts.end(), std::back_inserter(all.verified.verdicts));
      ++all.rounds;
      if (config_.rl.resample_rounds == 0) break;
    }
    return all;
  }

  void reinforce(int64_t step, TaskSampler& sampler, Credit& credit) {
    std::string phase = cat("rl/step_", step), name = cat("rl_", step);
    if (run_.phase_done(phase)) {
      Json data = run_.phase_data(phase);
      sampler.restore(data["sampler"]);
      credit.restore(data.value("credit", Json::object()));
      return;
    }
    attach_adapter(step == 1 ? rl_start() : cat("rl_", step - 1));
    double start = now_s();
    Rng rng = rng_.at("rl").at(static_cast<uint64_t>(step));
    Experience experience = with_memory_advice(phase + ": sampling", "policy.slots or rl.sampling.max_new_tokens",
                                               [&] { return gather(sampler, rng.at("rollouts"), phase); });
    save_rollouts(rollouts_file(step), experience);

    std::vector<Group> groups;
    Scores scores;
    for (size_t g = 0; g < experience.scores.size(); ++g) {
      if (!experience.trained_on[g]) continue;
      groups.push_back(experience.verified.groups[g]);
      scores.push_back(experience.credited[g]);
    }
    double divergence = 0;
    bool kl_reward = config_.rl.loss.kl > 0 && config_.rl.loss.kl_in == "reward";
    if (kl_reward) {
      divergence = subtract_divergence(policy(), groups, reference(), config_.rl.loss, sampling_temperature(),
                                       config_.rl.train.micro_batch_tokens, &scores);
    }
    auto examples = credit.assign(groups, scores);
    // Also where this step turns out to teach nothing: the next goes on from it.
    AdamW* kept = config_.rl.train.optimizer.schedule == "constant" ? &optimizer_of(attached_) : nullptr;
    TrainSummary summary;
    if (examples.empty()) {
      log_warn(phase + ": no sample earned credit, the policy stays as it is");
    } else {
      summary = train_examples(examples, config_.rl.train, rng.at("update"), phase, cat("rl ", step), kept);
    }
    save_checkpoint(name, kept);
    Json more = kl_reward ? Json{{"reward/kl", divergence}} : Json::object();
    Json line = write_step(step, experience, examples, summary, sampler, now_s() - start, more);
    run_.mark_done(phase, {{"sampler", sampler.state()},
                           {"credit", credit.state()},
                           {"kept", examples.size()},
                           {"score", {{"reward", line["reward/mean"]}, {"correct_rate", line["correct_rate"]}}},
                           {"update", to_json(summary)}});
    checkpoints_.done(step);
  }

  Json write_step(int64_t step, const Experience& experience, const std::vector<TrainExample>& examples,
                  const TrainSummary& summary, const TaskSampler& sampler, double seconds, const Json& more) {
    Json line = step_metrics({step, experience.verified, experience.scores, experience.credited, config_.rl.advantage,
                              experience.rounds, static_cast<int64_t>(examples.size()), summary, grad_norm_,
                              device_peak_bytes(policy().weights().device), seconds});
    line.update(turn_metrics(experience.verified, experience.scores, experience.credited, config_.rl.turns));
    line.update(more);
    for (const auto& [metric, value] : sampler.metrics()) line[metric] = value;
    run_.steps().write(line);
    log_info(cat("rl/step_", step, ": reward ", fixed(line["reward/mean"].get<double>(), 3), ", ",
                 experience.outcomes.contains("pass") ? experience.outcomes.at("pass") : 0, " of ",
                 line["rollouts"].dump(), " correct, ", examples.size(), " kept"));
    return line;
  }

  // The policy that RL began with; null = the base model.
  const LoraAdapter* reference() {
    if (!config_.sft.enabled) return nullptr;
    if (!reference_) reference_ = load_checkpoint(rl_start());
    return &*reference_;
  }

  double sampling_temperature() const {
    return config_.rl.sampling.temperature > 0 ? config_.rl.sampling.temperature : 1;
  }

  std::string rl_start() const { return config_.sft.enabled ? "sft" : "fresh"; }

  // Supervised fine-tuning that goes on and can be stopped.
  struct SftPart {
    AdamW* optimizer;
    int64_t from_update;
    const int64_t* done;  // Parts that are behind it.
    std::function<void(const UpdateReport&)> after;
  };

  TrainSummary train_examples(const std::vector<TrainExample>& examples, const TrainConfig& config, const Rng& rng,
                              const std::string& phase, const std::string& what, AdamW* optimizer = nullptr,
                              const SftPart* part = nullptr) {
    std::optional<Progress> bar;
    auto on_update = [&](const UpdateReport& r) {
      if (!bar) bar.emplace(what, r.steps, "steps");
      grad_norm_ = r.grad_norm;
      double rate = static_cast<double>(r.tokens) / r.seconds;
      bar->update(r.step, cat("loss ", fixed(r.loss, 3), ", ", fixed(rate, 0), " tokens/s"));
      Json line = {{"phase", phase == "sft" ? phase : phase + "/update"},
                   {"unit", part ? sft_part(*part->done + 1) : phase},
                   {"step", r.step},
                   {"loss", r.loss},
                   {"lr", r.lr},
                   {"grad_norm", r.grad_norm},
                   {"tokens", r.tokens},
                   {"tokens_per_s", rate},
                   {"memory/resident_bytes", resident_bytes()},
                   {"seconds", r.seconds}};
      add_policy_metrics(r.policy, &line);
      run_.steps().write(line);
      if (part) part->after(r);
      return true;
    };
    TrainSummary summary;
    if (examples.front().has_advantages()) {
      PolicyUpdate how;
      how.loss = config_.rl.loss;
      how.temperature = sampling_temperature();
      how.longest_answer = config_.rl.sampling.max_new_tokens;
      if (how.loss.kl_in == "reward") how.loss.kl = 0;  // It is in the advantages.
      if (how.loss.kl > 0) how.reference = reference();
      summary = with_memory_advice(what, "rl.train.micro_batch_tokens", [&] {
        return train_policy(policy(), examples, config, how, rng, on_update, optimizer);
      });
    } else if (part) {
      summary = with_memory_advice(what, "sft.micro_batch_tokens", [&] {
        return train(policy(), examples, config, rng, on_update, part->optimizer, part->from_update);
      });
    } else {
      summary = with_memory_advice(what, "rl.train.micro_batch_tokens",
                                   [&] { return train(policy(), examples, config, rng, on_update, optimizer); });
    }
    if (interrupted()) throw Interrupted();
    return summary;
  }

  // The optimizer that goes on from the checkpoint `name`, whose adapter is attached.
  AdamW& optimizer_of(const std::string& name) {
    if (!optimizer_) {
      optimizer_.emplace(config_.rl.train.optimizer, policy().adapter().parameters());
      fs::path file = checkpoints_.path(name) / "optimizer.safetensors";
      if (fs::exists(file)) optimizer_->load(file.string());
    }
    return *optimizer_;
  }

  // ------------------------------------------------------------------------------------------------------- checkpoints

  fs::path model_folder() { return fs::canonical(policy().config().model); }

  void save_checkpoint(const std::string& name, const AdamW* optimizer = nullptr) {
    checkpoints_.save(name, model_folder(), [&](const fs::path& folder) {
      policy().adapter().save(folder.string(), model_folder().string());
      for (const char* file : {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"}) {
        fs::path from = model_folder() / file;
        if (fs::exists(from)) write_file(folder / file, read_file(from));
      }
      if (optimizer) optimizer->save((folder / "optimizer.safetensors").string());
    });
    attached_ = name;
  }

  LoraAdapter load_checkpoint(const std::string& name) {
    check_checkpoint(checkpoints_.path(name), model_folder());
    return LoraAdapter::load(checkpoints_.path(name).string(), policy().weights());
  }

  // Makes the policy the one called `name`: "base", "fresh", "sft", "rl" (the last step) or "rl_N".
  void attach_adapter(std::string name) {
    if (name == "rl") name = cat("rl_", config_.rl.steps);
    if (name == attached_) return;
    optimizer_.reset();  // It was that of the adapter that goes.
    if (name == "base") {
      policy().remove_adapter();
    } else if (name == "fresh") {
      policy().set_adapter(LoraAdapter::create(policy().weights(), config_.lora, rng_.at("lora")));
    } else {
      policy().set_adapter(load_checkpoint(name));
      policy().adapter().config.dropout = config_.lora.dropout;
    }
    attached_ = name;
  }

  // ------------------------------------------------------------------------------------------------------------ report

  void report() {
    std::vector<ResultsRow> rows;
    std::vector<RateDifference> comparisons;
    for (size_t m = 0; m < records_.size(); ++m) {
      rows.push_back(make_row(records_[m].first, records_[m].second));
      if (m == 0) continue;
      auto more = compare_levels(records_[m - 1].first, records_[m - 1].second, records_[m].first, records_[m].second);
      comparisons.insert(comparisons.end(), more.begin(), more.end());
    }
    Json results = results_to_json(rows, comparisons);
    if (config_.checkpoint.keep_best) results["best_checkpoint"] = checkpoints_.best();
    write_file(run_ / "results.json", results.dump(2) + "\n");
    write_file(run_ / "examples.json", examples().dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
    write_report(run_.path(), {plotly_script()});
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

  void record(const Verdict& verdict, const std::string& phase, std::optional<double> value) {
    Json line = to_json(verdict);
    line["phase"] = phase;
    line["reward"] = value ? Json(*value) : Json();
    run_.verdicts().write(line);
  }

  fs::path rollouts_file(int64_t step) const {
    return run_.path() /
           cat("rollouts/step_", std::string(6 - std::min<size_t>(6, cat(step).size()), '0'), step, ".jsonl");
  }

  void save_rollouts(const fs::path& path, const Experience& all) const {
    std::string lines;
    for (size_t g = 0; g < all.scores.size(); ++g) {
      for (size_t r = 0; r < all.scores[g].size(); ++r) {
        const Rollout& rollout = all.verified.groups[g].rollouts[r];
        Json line = {{"task_id", all.verified.groups[g].task.id},
                     {"sample_index", r},
                     {"text", rollout.text},
                     {"tokens", rollout.tokens},
                     {"log_probs", rollout.log_probs},
                     {"finished", rollout.finished},
                     {"reward", all.scores[g][r].reward ? Json(*all.scores[g][r].reward) : Json()},
                     {"outcome", to_string(all.verified.verdicts[g][r].outcome)}};
        line.update(turn_fields(rollout, all.credited[g][r], config_.rl.turns));
        lines += json_line(line) + "\n";
      }
    }
    write_file(path, lines);
  }

  static Json to_json(const TrainSummary& s) {
    return {{"steps", s.steps},     {"examples", s.examples},     {"left_out", s.left_out},  {"tokens", s.tokens},
            {"seconds", s.seconds}, {"first_loss", s.first_loss}, {"last_loss", s.last_loss}};
  }
  static Json to_json(const Verdict& v) { return tritonrl::to_json(v); }

  // Opened on first need, so that a finished run starts and ends at once.
  Policy& policy() {
    if (!policy_) {
      policy_.emplace(Policy::open(find_policy(config_), PromptTemplate::load(find_data_file(config_.data.prompt))));
      attached_ = "base";
    }
    return *policy_;
  }
  // One verifier is open at a time: two judges would share a GPU's memory.
  Verifier& verifier(bool full = false) {
    full = full && config_.eval.verifier == "full";
    if (!verifier_ || full != verifier_is_full_) {
      verifier_.reset();
      verifier_ = Verifier::open(config_.verify, make_verify_seams(full ? with_every_extension(config_) : config_));
      verifier_is_full_ = full;
    }
    return *verifier_;
  }
  Verifier& judge_of_results() { return verifier(/*full=*/true); }

  Config config_;
  RunDir run_;
  Rng rng_;
  Checkpoints checkpoints_;
  Splits splits_;
  std::optional<Policy> policy_;
  std::optional<AdamW> optimizer_;        // Of the attached adapter, where it is kept over steps.
  std::optional<LoraAdapter> reference_;  // The policy that RL began with, for rl.loss.kl.
  std::unique_ptr<Verifier> verifier_;
  bool verifier_is_full_ = false;
  std::string attached_;
  double grad_norm_ = 0;  // Of the last update.
  std::vector<std::pair<std::string, std::vector<EvalRecord>>> records_;
};

}  // namespace

fs::path run_training(const Config& config, const TrainOptions& options) {
  check_can_start(config);
  return Pipeline(config, options).run();
}

}  // namespace tritonrl
