// SPDX-License-Identifier: Apache-2.0
#include "eval/evaluate.h"

#include "base/error.h"
#include "base/text.h"

namespace tritonrl {

Verified roll_out_and_verify(const PolicySnapshot& policy, Verifier& verifier, std::span<const Task> tasks,
                             int64_t samples, const SamplingConfig& sampling, const Rng& rng, const Collecting& how) {
  Verified out;
  std::vector<Candidate> candidates;
  for (const Task& task : tasks) {
    for (int64_t r = 0; r < samples; ++r) {
      Candidate candidate;
      candidate.id = cat(task.id, "#", r);
      candidate.task = task;
      candidates.push_back(std::move(candidate));
    }
  }
  auto place = [&](size_t g, int64_t r) { return g * static_cast<size_t>(samples) + static_cast<size_t>(r); };
  KnownAnswer known;
  if (how.journal) known = [&](size_t g, int64_t r) { return how.journal->answer(1, place(g, r)); };
  auto draw = [&](const GenerateProgress& progress, const auto& on_answer) {
    auto answered = [&](size_t g, int64_t r, const Rollout& one) { on_answer(place(g, r), one); };
    out.groups = policy.roll_out(tasks, samples, sampling, rng, progress, answered, known);
  };
  Collected all = sample_and_verify(verifier, std::move(candidates), draw, how, 1,
                                    verifier.shared_device(policy.weights().device.str()));
  auto begin = all.verdicts.begin();
  for (size_t g = 0; g < tasks.size(); ++g, begin += samples) out.verdicts.emplace_back(begin, begin + samples);
  out.times = all.times;
  out.tokens = all.tokens;
  return out;
}

std::vector<EvalRecord> records_of(const Verified& verified) {
  std::vector<EvalRecord> records;
  for (size_t g = 0; g < verified.groups.size(); ++g) {
    const Group& group = verified.groups[g];
    for (size_t r = 0; r < group.rollouts.size(); ++r) {
      const Rollout& rollout = group.rollouts[r];
      EvalRecord record;
      record.task_id = group.task.id;
      record.level = group.task.level;
      record.sample_index = rollout.trajectory;
      record.turn = rollout.turn;
      record.verdict = verified.verdicts[g][r];
      record.text = rollout.text;
      record.tokens = static_cast<int64_t>(rollout.tokens.size());
      record.finished = rollout.finished ? "stop" : "length";
      for (float log_prob : rollout.log_probs) record.logprob += log_prob;
      records.push_back(std::move(record));
    }
  }
  return records;
}

void save_records(const std::filesystem::path& path, const std::vector<EvalRecord>& records) {
  std::string lines;
  for (const EvalRecord& record : records) {
    Json line = {{"task_id", record.task_id},
                 {"level", record.level},
                 {"sample_index", record.sample_index},
                 {"tokens", record.tokens},
                 {"finished", record.finished},
                 {"logprob", record.logprob},
                 {"text", record.text},
                 {"verdict", to_json(record.verdict)}};
    if (record.turn > 1) line["turn"] = record.turn;
    lines += json_line(line) + "\n";
  }
  write_file(path, lines);
}

std::vector<EvalRecord> load_records(const std::filesystem::path& path) {
  std::vector<EvalRecord> records;
  for_each_json_line(path, [&](int64_t line, const Json& json) {
    std::string where = cat(path.string(), ":", line);
    try {
      EvalRecord record;
      record.task_id = json.at("task_id").get<std::string>();
      record.level = json.at("level").get<int>();
      record.sample_index = json.at("sample_index").get<int64_t>();
      record.turn = json.value("turn", int64_t{1});
      record.tokens = json.at("tokens").get<int64_t>();
      record.finished = json.at("finished").get<std::string>();
      record.logprob = json.at("logprob").get<double>();
      record.text = json.at("text").get<std::string>();
      record.verdict = verdict_from_json(json.at("verdict"), where);
      records.push_back(std::move(record));
    } catch (const Json::exception& e) {
      throw usage_error("is not an evaluation record", where, "start the run anew with --overwrite");
    }
  });
  return records;
}

}  // namespace tritonrl
