// SPDX-License-Identifier: Apache-2.0
#include "report/sections.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace tritonrl::reporting {

namespace {

constexpr size_t kMaxCode = 24 << 10;    // Bytes shown of one block of code; a candidate may be megabytes.
constexpr size_t kMaxMessage = 2 << 10;  // Bytes shown of one message.

std::string clip(const std::string& text, size_t limit) {
  if (text.size() <= limit) return text;
  size_t end = limit;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // Not inside a UTF-8 sequence.
  return cat(text.substr(0, end), "\n[... ", text.size() - end, " more bytes left out of this report]");
}

// A word as a POSIX shell reads it.
std::string shell_word(const std::string& word) {
  auto safe = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || std::string("_-./=:,+@%").find(c) != std::string::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), safe)) return word;
  return "'" + replace_all(word, "'", "'\\''") + "'";
}

void add_example(const std::string& heading, const CandidateExample& example, Document& document) {
  const Verdict& v = example.verdict;
  document.blocks.push_back(Heading{3, heading});
  Text text = {plain("Task "),
               code(v.task_id),
               plain(cat(" (level ", v.level, "), candidate ")),
               code(v.candidate_id),
               plain(". Outcome "),
               code(to_string(v.outcome)),
               plain(" at stage "),
               code(to_string(v.stopped_at)),
               plain(". ")};
  text.push_back(plain(v.triton_launches > 0
                           ? cat(v.triton_launches, v.triton_launches == 1 ? " Triton launch. " : " Triton launches. ")
                           : "No Triton launch was recorded. "));
  text.push_back(plain(v.speedup ? cat("Speedup ", fixed(*v.speedup, 2), "x. ") : "Speed not measured. "));
  if (!v.delegated_ops.empty()) text.push_back(plain(cat("Library operations: ", join(v.delegated_ops, ", "), ".")));
  document.blocks.push_back(Paragraph{Paragraph::Role::kNormal, std::move(text)});
  if (!v.reason().empty()) document.blocks.push_back(CodeBlock{"Reason", "text", clip(v.reason(), kMaxMessage), false});
  Table table;
  table.caption = "Stages it went through";
  table.columns = {{"Stage", false}, {"Outcome", false}, {"Time", true}};
  for (const auto& stage : v.stages) {
    table.rows.push_back({{{code(to_string(stage.stage))}, ""},
                          {{code(to_string(stage.outcome()))}, ""},
                          {{plain(fixed(stage.seconds * 1000, stage.seconds < 0.01 ? 2 : 0) + " ms")}, ""}});
  }
  if (!table.rows.empty()) document.blocks.push_back(std::move(table));
  if (v.code.empty()) {
    document.blocks.push_back(Paragraph{Paragraph::Role::kNormal, {plain("The answer held no code block.")}});
  } else {
    document.blocks.push_back(CodeBlock{"What the model wrote", "python", clip(v.code, kMaxCode), false});
  }
  if (!example.task_source.empty()) {
    document.blocks.push_back(CodeBlock{"The task it was given", "python", clip(example.task_source, kMaxCode), true});
  }
}

void add_examples(const RunData& run, Document& document) {
  if (!run.passed && !run.failed) return;
  document.blocks.push_back(Heading{2, "Two candidates"});
  if (run.passed) add_example("One that passed", *run.passed, document);
  if (run.failed) add_example("One that failed", *run.failed, document);
  if (!run.passed)
    document.blocks.push_back(Paragraph{Paragraph::Role::kNormal, {plain("No candidate of this run passed.")}});
  if (!run.failed)
    document.blocks.push_back(Paragraph{Paragraph::Role::kNormal, {plain("No candidate of this run failed.")}});
}

// The command that started the run, as env.json's "command" has it (a list of words, or one line).
std::string command_of(const RunData& run) {
  auto it = run.env.is_object() ? run.env.find("command") : run.env.end();
  if (!run.env.is_object() || it == run.env.end()) return "";
  if (it->is_string()) return it->get<std::string>();
  std::vector<std::string> words;
  if (it->is_array()) {
    for (const Json& word : *it) {
      if (word.is_string()) words.push_back(shell_word(word.get<std::string>()));
    }
  }
  return join(words, " ");
}

void add_appendix(const RunData& run, Document& document) {
  document.blocks.push_back(Heading{2, "How to run this again"});
  std::string command = command_of(run);
  if (!command.empty()) {
    document.blocks.push_back(CodeBlock{"The exact command", "sh", clip(command, kMaxMessage), false});
  } else {
    document.blocks.push_back(Paragraph{Paragraph::Role::kNormal,
                                        {plain("The command line of this run is not recorded ("), code("env.json"),
                                         plain(" has no "), code("command"), plain(").")}});
  }
  if (!run.config.empty()) {
    document.blocks.push_back(
        CodeBlock{"config.yaml, every setting resolved", "yaml", clip(run.config, kMaxCode), true});
  }
  if (!run.env.is_object() || run.env.empty()) return;
  Table table;
  table.caption = "Environment";
  table.columns = {{"What", false}, {"Value", false}};
  for (const auto& [key, value] : run.env.items()) {
    if (key == "command") continue;
    table.rows.push_back(
        {{{plain(clip(key, 100))}, ""},
         {{plain(clip(value.is_string() ? value.get<std::string>() : json_line(value), kMaxMessage))}, ""}});
  }
  if (!table.rows.empty()) document.blocks.push_back(std::move(table));
}

}  // namespace

Document tell(const RunData& run) {
  Document document;
  document.title = cat("Run ", run.name);
  add_verdict(run, document);
  if (!run.problems.empty()) {
    BulletList list{true, "This report is not complete", {}};
    for (const auto& problem : run.problems) list.items.push_back({plain(problem + ".")});
    document.blocks.push_back(std::move(list));
  }
  add_results(run, document);
  add_stages(run, document);
  add_sft(run, document);
  add_rl(run, document);
  add_time(run, document);
  add_examples(run, document);
  add_appendix(run, document);
  return document;
}

std::string percent(double share) { return fixed(share * 100, 1) + " %"; }

std::string percent_range(const Interval& interval, int64_t n) {
  int digits = n >= 1000 ? 1 : 0;
  return cat(fixed(interval.low * 100, digits), "-", fixed(interval.high * 100, digits), " %");
}

std::string points(double difference) {
  std::string text = fixed(difference * 100, 1);
  if (text == "-0.0") text = "0.0";
  return (text.front() == '-' || text == "0.0" ? "" : "+") + text;
}

std::string model_words(const std::string& model) {
  if (model == "base") return "the base model";
  if (model == "sft") return "SFT";
  if (model == "rl") return "RL";
  return model;
}

std::string plural(int64_t count, const std::string& noun) { return cat(count, " ", noun, count == 1 ? "" : "s"); }

std::string top_counts(const std::map<std::string, int64_t>& counts, size_t limit) {
  std::vector<std::pair<std::string, int64_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> words;
  for (size_t i = 0; i < std::min(limit, sorted.size()); ++i)
    words.push_back(cat(sorted[i].first, " ", sorted[i].second));
  if (sorted.size() > limit) words.push_back("...");
  return join(words, ", ");
}

}  // namespace tritonrl::reporting
