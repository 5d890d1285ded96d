// SPDX-License-Identifier: Apache-2.0
#include "model/jinja_chat.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "base/build_paths.h"
#include "base/error.h"
#include "base/text.h"

namespace tritonrl {
namespace {

// Of the private use area, so in no template: "<number of the message>".
constexpr std::string_view kOpen = "\xee\x80\x80", kClose = "\xee\x80\x81";

// What Python's str.strip takes off, in UTF-8.
constexpr std::array<std::string_view, 29> kSpaces = {
    "\t",           "\n",           "\v",           "\f",           "\r",
    "\x1c",         "\x1d",         "\x1e",         "\x1f",         " ",
    "\xc2\x85",     "\xc2\xa0",     "\xe1\x9a\x80", "\xe2\x80\x80", "\xe2\x80\x81",
    "\xe2\x80\x82", "\xe2\x80\x83", "\xe2\x80\x84", "\xe2\x80\x85", "\xe2\x80\x86",
    "\xe2\x80\x87", "\xe2\x80\x88", "\xe2\x80\x89", "\xe2\x80\x8a", "\xe2\x80\xa8",
    "\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80"};

std::string_view without_spaces(std::string_view text, bool left, bool right) {
  auto at_front = [&] {
    return std::ranges::find_if(kSpaces, [&](std::string_view space) { return text.starts_with(space); });
  };
  auto at_back = [&] {
    return std::ranges::find_if(kSpaces, [&](std::string_view space) { return text.ends_with(space); });
  };
  for (auto it = at_front(); left && it != kSpaces.end(); it = at_front()) text.remove_prefix(it->size());
  for (auto it = at_back(); right && it != kSpaces.end(); it = at_back()) text.remove_suffix(it->size());
  return text;
}

// What tools/render_chat.py prints when it is given `input`.
std::string run_python(const std::string& input) {
  std::filesystem::path script = std::filesystem::path(source_dir()) / "tools/render_chat.py";
  auto failed = [](const std::string& what) { return environment_error(what, python_program(), "run tools/setup.sh"); };
  int in = ::memfd_create("chat", MFD_CLOEXEC), ends[2];
  if (in < 0 || ::write(in, input.data(), input.size()) != static_cast<ssize_t>(input.size()) ||
      ::lseek(in, 0, SEEK_SET) != 0 || ::pipe2(ends, O_CLOEXEC) != 0) {
    if (in >= 0) ::close(in);
    throw failed("cannot hand a chat template to Python");
  }
  std::vector<std::string> words = {python_program(), "-I", "-B", script.string()};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  pid_t child = -1;
  int code = ::posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(in);
  ::close(ends[1]);
  std::string out;
  char buffer[4096];
  for (ssize_t n; code == 0 && (n = ::read(ends[0], buffer, sizeof buffer)) != 0;) {
    if (n > 0) out.append(buffer, static_cast<size_t>(n));
    if (n < 0 && errno != EINTR) break;
  }
  ::close(ends[0]);
  if (code != 0) throw failed(cat("cannot start Python: ", std::strerror(code)));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) return R"({"error": "it takes longer than ten seconds"})";
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) throw failed("Python could not render a chat template");
  return out;
}

}  // namespace

JinjaChat::JinjaChat(std::string jinja, Json tokens, std::string where)
    : jinja_(std::move(jinja)), where_(std::move(where)), tokens_(std::move(tokens)) {
  Json with_system = ask({"system", "user"}, true);  // Some refuse it, some say nothing and leave it out.
  takes_system_ = !with_system.contains("error") &&
                  with_system["texts"][0].get<std::string>().find(cat(kOpen, 0, kClose)) != std::string::npos;
  pieces({"user"}, true);
}

// {"texts": [with marks alone, with marks between white space]} or {"error": text}.
Json JinjaChat::ask(const std::vector<std::string>& roles, bool add_generation_prompt) const {
  Json conversations = Json::array();
  for (const char* around : {"", "\t\n"}) {
    Json messages = Json::array();
    for (size_t i = 0; i < roles.size(); ++i) {
      messages.push_back({{"role", roles[i]}, {"content", cat(around, kOpen, i, kClose, around)}});
    }
    conversations.push_back(std::move(messages));
  }
  Json said = Json::parse(run_python(Json{{"template", jinja_},
                                          {"tokens", tokens_},
                                          {"conversations", conversations},
                                          {"add_generation_prompt", add_generation_prompt}}
                                         .dump()),
                          nullptr, false);
  if (!said.is_object()) throw environment_error("Python could not render a chat template", python_program());
  return said;
}

const std::vector<JinjaChat::Piece>& JinjaChat::pieces(const std::vector<std::string>& roles,
                                                       bool add_generation_prompt) const {
  std::lock_guard lock(mutex_);
  std::string key = cat(join(roles, " "), add_generation_prompt ? " ..." : "");
  if (auto it = known_.find(key); it != known_.end()) return it->second;
  auto refuse = [&](const std::string& why) {
    return usage_error(cat("the chat template does not do for the roles ", join(roles, ", "), ": ", valid_utf8(why)),
                       where_, "use an instruct model whose template takes system, user and assistant messages");
  };
  Json said = ask(roles, add_generation_prompt);
  if (said.contains("error")) throw refuse(said["error"].get<std::string>());
  auto bare = said["texts"][0].get<std::string>(), spaced = said["texts"][1].get<std::string>();
  std::vector<Piece> out;
  std::vector<bool> there(roles.size(), false);
  std::string_view rest = bare;
  while (true) {
    size_t open = rest.find(kOpen);
    if (std::string_view own = rest.substr(0, open); !own.empty()) out.push_back({std::string(own)});
    if (open == std::string_view::npos) break;
    size_t close = rest.find(kClose, open);
    size_t number = roles.size();
    if (close != std::string_view::npos) {
      std::from_chars(rest.data() + open + kOpen.size(), rest.data() + close, number);
    }
    if (number >= roles.size()) throw refuse("it changes messages");
    Piece piece;
    piece.message = static_cast<int64_t>(number);
    std::string mark = cat(kOpen, number, kClose);
    piece.strip_left = spaced.find(cat("\t\n", mark)) == std::string::npos;
    piece.strip_right = spaced.find(cat(mark, "\t\n")) == std::string::npos;
    there[number] = true;
    out.push_back(std::move(piece));
    rest.remove_prefix(close + kClose.size());
  }
  if (std::ranges::find(there, false) != there.end()) throw refuse("it leaves out messages");
  return known_[key] = std::move(out);
}

std::vector<TextPart> JinjaChat::parts(const std::vector<std::string>& roles, const std::vector<std::string>& contents,
                                       bool add_generation_prompt) const {
  if (!takes_system_ && roles.size() > 1 && roles[0] == "system" && roles[1] == "user") {
    std::vector<std::string> others(contents.begin() + 1, contents.end());
    others[0] = cat(contents[0], "\n\n", contents[1]);
    return parts({roles.begin() + 1, roles.end()}, others, add_generation_prompt);
  }
  std::vector<TextPart> out;
  for (const Piece& piece : pieces(roles, add_generation_prompt)) {
    if (piece.message < 0) {
      out.push_back({piece.text, true});
    } else {
      const std::string& content = contents[static_cast<size_t>(piece.message)];
      out.push_back({stripped(content, piece.strip_left, piece.strip_right), false});
    }
  }
  return out;
}

std::string JinjaChat::stripped(const std::string& message, bool left, bool right) {
  return std::string(without_spaces(message, left, right));
}

JinjaChat::Answer JinjaChat::answer() const {
  Answer out;
  auto is_answer = [](const Piece& piece) { return piece.message == 1; };
  std::string prompt, before;
  for (const Piece& piece : pieces({"user"}, true)) prompt += piece.message < 0 ? piece.text : cat(kOpen, kClose);
  const auto& last = pieces({"user", "assistant"}, false);
  auto at = std::ranges::find_if(last, is_answer);
  for (auto piece = last.begin(); piece != at; ++piece) before += piece->message < 0 ? piece->text : cat(kOpen, kClose);
  if (before.starts_with(prompt)) out.before = before.substr(prompt.size());
  out.strip_left = at->strip_left;
  out.strip_right = at->strip_right;
  if (++at != last.end()) out.behind = at->text;
  if (out.behind.empty()) {  // Some end an answer only when there is more to come.
    const auto& going_on = pieces({"user", "assistant", "user"}, false);
    auto next = std::ranges::find_if(going_on, is_answer) + 1;
    if (next != going_on.end()) out.behind = next->text;
  }
  return out;
}

}  // namespace tritonrl
