// SPDX-License-Identifier: Apache-2.0
#include "app/train/fine_tuning.h"

#include <algorithm>
#include <optional>
#include <thread>

#include "app/train/training_stream.h"
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
    const Policy& encoder = policy.get();
    auto encode = [&](const Task& task) {
      EncodedExample encoded = encoder.encode_example(encoder.encode_prompt(task), answer_for(task, config.data.plan));
      return supervised_example(std::move(encoded.tokens), encoded.answer_begin, task.id);
    };
    std::vector<TrainExample> examples(tasks.size());
    parallel_for(tasks.size(), std::thread::hardware_concurrency(), [&](size_t i) { examples[i] = encode(tasks[i]); });
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
    std::optional<TrainingStream> stream;
    if (int64_t count = config.data.train.stream; count > 0) {
      TrainingStream::Options options;
      options.examples = count;
      options.of_update = config.sft.batch_size;
      options.from_example = std::min(count, how.from_update * options.of_update);
      options.longest = longest_example(encoder, config.sft);
      for (const Json& id : run.phase_data("data").at("wrong")) options.wrong.insert(id.get<std::string>());
      options.journal = run / "tasks/taught.jsonl";
      stream.emplace(config.data, load_exclusion(config.data.exclude), options, encode);
      how.updates = (count + options.of_update - 1) / options.of_update;
      how.next = [&] { return stream->next(); };
    }
    TrainSummary summary = policy.train_on(examples, config.sft, rng.at("sft"), how);
    summary.steps = so_far.value("steps", summary.steps);
    summary.first_loss = so_far.value("first_loss", summary.first_loss);
    summary.last_loss = so_far.value("last_loss", summary.last_loss);
    summary.tokens = so_far.value("tokens", summary.tokens);
    summary.seconds = so_far.value("seconds", summary.seconds);
    if (stream) {
      summary.left_out = stream->left_out();
      log_info(cat("sft: waited ", fixed(stream->waited_s(), 1), " s of ", fixed(summary.seconds - before, 1),
                   " for examples (", fixed(100 * stream->waited_s() / (summary.seconds - before), 1), " %); ",
                   summary.left_out, " were too long"));
    }
    policy.save("sft");
    so_far["whole"] = to_json(summary);
    run.mark_done(phase_of(part + 1), so_far);
  }
  run.mark_done("sft", so_far.at("whole"));
  checkpoints.remove(kPartCheckpoint);
  checkpoints.done(0);
}

}  // namespace tritonrl
