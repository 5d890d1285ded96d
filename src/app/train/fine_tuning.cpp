// SPDX-License-Identifier: Apache-2.0
#include "app/train/fine_tuning.h"

#include <thread>

#include "base/log.h"
#include "base/parallel.h"
#include "base/process/interrupt.h"

namespace tritonrl {
namespace {

constexpr const char* kPartCheckpoint = "sft_part_";

std::string phase_of(int64_t part) { return cat("sft/part_", part); }
std::string checkpoint_of(int64_t part) { return cat(kPartCheckpoint, part); }

}  // namespace

Json to_json(const TrainSummary& s) {
  return {{"steps", s.steps},     {"examples", s.examples},     {"left_out", s.left_out},  {"tokens", s.tokens},
          {"seconds", s.seconds}, {"first_loss", s.first_loss}, {"last_loss", s.last_loss}};
}

void fine_tune(const Config& config, RunDir& run, Checkpoints& checkpoints, TrainedPolicy& policy,
               const std::vector<Task>& tasks, const Rng& rng) {
  if (run.phase_done("sft")) return checkpoints.remove(kPartCheckpoint);
  int64_t part = 0;
  while (run.phase_done(phase_of(part + 1))) ++part;
  Json so_far = part > 0 ? run.phase_data(phase_of(part)) : Json::object();
  if (!so_far.contains("whole")) {
    policy.set_adapter(part > 0 ? policy.load(checkpoint_of(part)) : policy.fresh());
    AdamW optimizer(config.sft.optimizer, policy.get().adapter().parameters());
    if (part > 0) {
      optimizer.load((checkpoints.path(checkpoint_of(part)) / "optimizer.safetensors").string());
      log_info(cat("sft: continues after update ", so_far.at("steps").get<int64_t>()));
    }
    std::vector<TrainExample> examples(tasks.size());
    const Policy& encoder = policy.get();
    parallel_for(tasks.size(), std::thread::hardware_concurrency(), [&](size_t i) {
      EncodedExample encoded =
          encoder.encode_example(encoder.encode_prompt(tasks[i]), answer_for(tasks[i], config.data.plan));
      examples[i] = supervised_example(std::move(encoded.tokens), encoded.answer_begin, tasks[i].id);
    });
    double before = so_far.value("seconds", 0.0), start = now_s();
    TrainedPolicy::Update how{"sft", "sft", "sft.micro_batch_tokens", &optimizer};
    how.from_update = so_far.value("steps", int64_t{0});
    how.unit = [&] { return phase_of(part + 1); };
    how.after = [&](const UpdateReport& r) {
      if (r.step == 1) so_far["first_loss"] = r.loss;
      so_far["tokens"] = so_far.value("tokens", int64_t{0}) + r.tokens;
      so_far["steps"] = r.step;
      so_far["last_loss"] = r.loss;
      so_far["seconds"] = before + now_s() - start;
      int64_t every = config.checkpoint.every_updates;
      if (!interrupted() && (every == 0 || r.step % every != 0 || r.step == r.steps)) return;
      ++part;
      policy.save(checkpoint_of(part), &optimizer);
      run.mark_done(phase_of(part), so_far);
      checkpoints.remove(kPartCheckpoint, checkpoint_of(part));
    };
    TrainSummary summary = policy.train_on(examples, config.sft, rng.at("sft"), how);
    summary.steps = so_far.value("steps", summary.steps);
    summary.first_loss = so_far.value("first_loss", summary.first_loss);
    summary.last_loss = so_far.value("last_loss", summary.last_loss);
    summary.tokens = so_far.value("tokens", summary.tokens);
    summary.seconds = so_far.value("seconds", summary.seconds);
    policy.save("sft");
    so_far["whole"] = to_json(summary);
    run.mark_done(phase_of(part + 1), so_far);
  }
  run.mark_done("sft", so_far.at("whole"));
  checkpoints.remove(kPartCheckpoint);
  checkpoints.done(0);
}

}  // namespace tritonrl
