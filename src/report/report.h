// SPDX-License-Identifier: Apache-2.0
// Report: a run directory in, report.md and a self-contained report.html out. Always regenerable; never needs a GPU or
// torch.
//
// start here -> run_data.h (what is read) -> sections.h (what is said) -> layout.h (how it is set).
// Candidates' code and messages are hostile text: every byte of them is escaped by the renderers, and the page's
// content security policy lets no script run; there is none.
#pragma once

#include <filesystem>
#include <string>

#include "report/run_data.h"

namespace tritonrl {

// GitHub-flavoured Markdown.
std::string render_markdown(const RunData& run);
std::string render_html(const RunData& run);

// Writes report.md and report.html into run_dir, each atomically. An interrupted run gives a report that says what is
// missing. Throws Error: (usage) when run_dir is no directory, (environment) when it cannot be written.
void write_report(const std::filesystem::path& run_dir);

}  // namespace tritonrl
