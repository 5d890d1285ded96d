// SPDX-License-Identifier: Apache-2.0
#include "rollout/rollout_journal.h"

#include <system_error>

#include "base/files/json.h"
#include "base/text.h"

namespace tritonrl {

namespace fs = std::filesystem;

RolloutJournal::RolloutJournal(fs::path file, const std::string& work) : file_(std::move(file)) {
  std::error_code error;
  fs::create_directories(file_.parent_path(), error);
  if (error) throw environment_error("cannot be made: " + error.message(), file_.parent_path().string());
  out_ = LineFile::open(file_);
  const Json head = {{"work", work}};
  if (!take_over(head)) {
    answers_.clear();
    verdicts_.clear();
    out_->keep(0);
    out_->write(head);
  }
  answers_found_ = static_cast<int64_t>(answers_.size());
  verdicts_found_ = static_cast<int64_t>(verdicts_.size());
}

bool RolloutJournal::take_over(const Json& head) {
  bool ours = false;
  try {
    out_->for_each([&](int64_t number, const Json& line) {
      if (number == 1) {
        ours = line == head;
        return;
      }
      if (!ours) return;
      Key key(line.at("turn").get<int64_t>(), line.at("candidate").get<size_t>());
      if (line.contains("verdict")) {
        verdicts_.insert_or_assign(key, verdict_from_json(line["verdict"], file_.string()));
      } else {
        answers_.insert_or_assign(
            key, Generated{line.at("tokens").get<std::vector<int32_t>>(),
                           line.at("log_probs").get<std::vector<float>>(), line.at("finished").get<bool>()});
      }
    });
  } catch (const Json::exception&) {
    return false;  // Zeros where a power failure took the data, say.
  } catch (const Error&) {
    return false;
  }
  return ours;
}

const Generated* RolloutJournal::answer(int64_t turn, size_t candidate) const {
  std::lock_guard lock(mutex_);
  auto it = answers_.find({turn, candidate});
  return it == answers_.end() ? nullptr : &it->second;
}

const Verdict* RolloutJournal::verdict(int64_t turn, size_t candidate) const {
  std::lock_guard lock(mutex_);
  auto it = verdicts_.find({turn, candidate});
  return it == verdicts_.end() ? nullptr : &it->second;
}

void RolloutJournal::note(int64_t turn, size_t candidate, const Generated& answer) {
  write({{"turn", turn},
         {"candidate", candidate},
         {"tokens", answer.tokens},
         {"log_probs", answer.log_probs},
         {"finished", answer.finished}});
}

void RolloutJournal::note(int64_t turn, size_t candidate, const Verdict& verdict) {
  if (verdict.is_harness_fault()) return;
  write({{"turn", turn}, {"candidate", candidate}, {"verdict", to_json(verdict)}});
}

void RolloutJournal::write(const Json& line) {
  std::string text = json_line(line) + "\n";
  std::lock_guard lock(mutex_);
  out_->write_lines(text);
}

void RolloutJournal::sync() {
  std::lock_guard lock(mutex_);
  out_->sync();
}

void RolloutJournal::remove() {
  std::lock_guard lock(mutex_);
  out_.reset();
  fs::remove(file_);
}

}  // namespace tritonrl
