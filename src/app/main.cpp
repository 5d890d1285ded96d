// SPDX-License-Identifier: Apache-2.0
// tritonrl: teaches a code LLM to write Triton GPU kernels.
//
// Exit codes: 0 done, 1 ran but a check or target was not met, 2 usage or config, 3 environment, 70 our bug, 130
// stopped.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>

#include "app/commands/commands.h"
#include "base/check.h"
#include "base/error.h"
#include "base/log.h"
#include "base/process/interrupt.h"
#include "base/text.h"

namespace {

using namespace tritonrl;

// Words that are commands in name only. The parser says which words it did not expect, not what they may have meant.
void refuse_unknown_command(CLI::App& app, int argc, char** argv) {
  CLI::App* level = &app;
  std::string path = "tritonrl";
  for (int i = 1; i < argc && level->get_require_subcommand_min() > 0; ++i) {
    std::string word = argv[i];
    if (word.starts_with("-")) continue;
    std::vector<std::string> known;
    CLI::App* next = nullptr;
    for (CLI::App* command : level->get_subcommands([](CLI::App*) { return true; })) {
      known.push_back(command->get_name());
      if (known.back() == word) next = command;
    }
    if (!next) {
      std::string close = nearest(word, known);
      throw usage_error(
          "unknown command '" + path + " " + word + "'", "",
          close.empty() ? "commands: " + join(known, ", ") : "did you mean '" + path + " " + close + "'?");
    }
    level = next;
    path += " " + word;
  }
}

// OpenMP's threads spin while they wait for one another, by default so long that beside one other busy process two
// cores generate a seventh of what they do alone (dev/LOG.md). libgomp reads how long before main() begins.
void wait_passively(char** argv) {
  constexpr const char* kSpins = "GOMP_SPINCOUNT";
  if (!std::getenv(kSpins) && !std::getenv("OMP_WAIT_POLICY")) {
    ::setenv(kSpins, "5000", 1);
    std::error_code unknown;  // By its own name, which is what `ps` shows.
    ::execv(std::filesystem::read_symlink("/proc/self/exe", unknown).c_str(), argv);  // Else all is as it was.
  }
  if (const char* spins = std::getenv(kSpins)) log_debug(cat(kSpins, " is ", spins));
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // A limit on file sizes is then an error like a full disk.
  std::string command_line = "tritonrl";
  for (int i = 1; i < argc; ++i) command_line += cat(" ", argv[i]);

  CLI::App app{
      "Teaches a code LLM to write Triton GPU kernels, with rewards from really compiling, running and checking them."};
  app.set_version_flag("--version", "tritonrl " TRITONRL_VERSION);
  app.require_subcommand(1);
  bool verbose = false;
  app.add_flag("-v,--verbose", verbose, "say more");
  Run run;
  add_doctor(app, run);
  add_data(app, run);
  add_model(app, run);
  add_train(app, run, command_line);
  add_ablate(app, run);
  add_verify(app, run);
  add_eval(app, run);
  add_report(app, run);
  try {
    refuse_unknown_command(app, argc, argv);
    app.parse(argc, argv);
  } catch (const Error& e) {
    log_error(e.what());
    return e.exit_code();
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  if (verbose) set_log_level(LogLevel::kDebug);
  for (const char* computes : {"train", "eval", "ablate"}) {
    if (app.got_subcommand(computes)) wait_passively(argv);
  }
  handle_interrupts();
  try {
    return run();
  } catch (const Error& e) {
    log_error(e.what());
    return e.exit_code();
  } catch (const Interrupted&) {
    log_warn("stopped; the same command continues where this one ended");
    return 130;
  } catch (const std::filesystem::filesystem_error& e) {  // A full disk, a folder without permission.
    log_error(environment_error(e.code().message(), e.path1().string()).what());
    return 3;
  } catch (const std::exception& e) {  // Libraries' exceptions that no room turned into an Error: ours to mend.
    log_error(cat("internal error: ", e.what()));
    return kExitOurBug;
  }
}
