// SPDX-License-Identifier: Apache-2.0
#include "base/process/subprocess.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/files/files.h"
#include "base/process/build_paths.h"
#include "base/text.h"

extern char** environ;

namespace tritonrl {

namespace fs = std::filesystem;

Subprocess::Subprocess(std::vector<std::string> command, std::string_view input) {
  auto failed = [&](int code) {
    return environment_error(cat("cannot start it: ", std::strerror(code)), command[0], "run tools/setup.sh");
  };
  int in = ::memfd_create("input", MFD_CLOEXEC), ends[2];
  if (in < 0) throw failed(errno);
  if (!write_all(in, input) || ::lseek(in, 0, SEEK_SET) != 0 || ::pipe2(ends, O_CLOEXEC) != 0) {
    int code = errno;
    ::close(in);
    throw failed(code);
  }
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  int code = ::posix_spawn(&process_, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(in);
  ::close(ends[1]);
  output_ = ends[0];
  if (code == 0) return;
  ::close(output_);
  throw failed(code);
}

Subprocess::~Subprocess() {
  if (output_ >= 0) ::close(output_);
  if (process_ > 0) ::kill(process_, SIGKILL);
  wait();
}

std::string Subprocess::read_all() {
  std::string out;
  char buffer[1 << 16];
  for (ssize_t n; (n = ::read(output_, buffer, sizeof buffer)) != 0;) {
    if (n > 0) out.append(buffer, static_cast<size_t>(n));
    if (n < 0 && errno != EINTR) throw environment_error(cat("cannot read from a process: ", std::strerror(errno)));
  }
  return out;
}

int Subprocess::take_output() {
  int taken = output_;
  output_ = -1;
  return taken;
}

int Subprocess::wait() {
  int status = 0;
  if (process_ <= 0) return 0;
  while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

std::vector<std::string> python_command(const std::string& script, const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {python_program(), "-I", "-B",
                                      (fs::path(source_dir()) / "tools" / script).string()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

fs::path unpacked_package(const std::string& name, const std::string& instead) {
  fs::path folder = fs::path(deps_dir()) / "pkg" / name;
  if (fs::exists(folder)) return folder;
  throw environment_error(cat("this needs ", name, ", which is not here"), folder.string(),
                          cat("run tools/setup.sh", instead.empty() ? "" : ", or ", instead));
}

}  // namespace tritonrl
