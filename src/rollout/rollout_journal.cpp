// SPDX-License-Identifier: Apache-2.0
#include "rollout/rollout_journal.h"

#include <system_error>

#include "base/json.h"
#include "base/text.h"

namespace tritonrl {

namespace fs = std::filesystem;

RolloutJournal::RolloutJournal(fs::path file, const std::string& work) : file_(std::move(file)) {
  std::error_code error;
  fs::create_directories(file_.parent_path(), error);
  if (error) throw environment_error("cannot be made: " + error.message(), file_.parent_path().string());
  const std::string head = json_line({{"work", work}});
  if (!take_over(head)) {
    answers_.clear();
    verdicts_.clear();
    write_file(file_, head + "\n");
  }
  answers_found_ = static_cast<int64_t>(answers_.size());
  verdicts_found_ = static_cast<int64_t>(verdicts_.size());
  out_ = AppendFile::open(file_);
}

bool RolloutJournal::take_over(const std::string& head) {
  if (!fs::exists(file_)) return false;
  std::string bytes = read_file(file_);
  size_t whole = bytes.rfind('\n');
  if (whole == std::string::npos || !bytes.starts_with(head + "\n")) return false;
  if (whole + 1 < bytes.size()) fs::resize_file(file_, whole + 1);
  try {
    size_t begin = head.size() + 1;
    for (size_t end; begin <= whole; begin = end + 1) {
      end = bytes.find('\n', begin);
      Json line = Json::parse(bytes.begin() + static_cast<int64_t>(begin), bytes.begin() + static_cast<int64_t>(end));
      Key key(line.at("turn").get<int64_t>(), line.at("candidate").get<size_t>());
      if (line.contains("verdict")) {
        verdicts_.insert_or_assign(key, verdict_from_json(line["verdict"], file_.string()));
      } else {
        answers_.insert_or_assign(
            key, Generated{line.at("tokens").get<std::vector<int32_t>>(),
                           line.at("log_probs").get<std::vector<float>>(), line.at("finished").get<bool>()});
      }
    }
  } catch (const Json::exception&) {
    return false;  // Zeros where a power failure took the data, say.
  } catch (const Error&) {
    return false;
  }
  return true;
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
  std::string bytes = json_line(line) + "\n";
  std::lock_guard lock(mutex_);
  out_->write(bytes);
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
