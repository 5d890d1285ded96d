// SPDX-License-Identifier: Apache-2.0
#include "rollout/evaluation.h"

#include <map>

#include "base/error.h"
#include "base/text.h"

namespace tritonrl {

std::vector<EvalRecord> records_of(const Rollouts& rollouts) {
  std::vector<EvalRecord> records;
  for (const Group& group : rollouts.groups) {
    for (const Sample& sample : group.samples) {
      const Rollout& rollout = sample.rollout;
      EvalRecord record;
      record.task_id = group.task.id;
      record.level = group.task.level;
      record.sample_index = rollout.trajectory;
      record.turn = rollout.turn;
      record.verdict = sample.verdict;
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

namespace {

EvalRecord record_from_json(const Json& json, const std::string& where, const char* hint) {
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
    return record;
  } catch (const Json::exception& e) {
    throw usage_error("is not an evaluation record", where, hint);
  }
}

}  // namespace

std::vector<EvalRecord> load_records(const std::filesystem::path& path) {
  std::vector<EvalRecord> records;
  for_each_json_line(path, [&](int64_t line, const Json& json) {
    records.push_back(record_from_json(json, cat(path.string(), ":", line), "start the run anew with --overwrite"));
  });
  return records;
}

std::vector<EvalRecord> load_answers(const std::filesystem::path& path) {
  std::vector<EvalRecord> records;
  std::map<std::string, int64_t> seen;  // Verdicts of each task.
  for_each_json_line(path, [&](int64_t line, const Json& json) {
    std::string where = cat(path.string(), ":", line);
    if (json.is_object() && json.contains("stages")) {
      EvalRecord record;
      record.verdict = verdict_from_json(json, where);
      record.task_id = record.verdict.task_id;
      record.level = record.verdict.level;
      record.sample_index = seen[record.task_id]++;
      record.finished = "";
      records.push_back(std::move(record));
    } else {
      records.push_back(record_from_json(
          json, where, "wanted are the records of `tritonrl eval --out` or the verdicts of `tritonrl verify --batch`"));
    }
  });
  return records;
}

}  // namespace tritonrl
