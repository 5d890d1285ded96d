// SPDX-License-Identifier: Apache-2.0
// Report: a run directory in, report.md and a self-contained report.html out. Always regenerable; never needs a GPU or
// torch.
//
// start here -> run_data.h (what is read) -> story.h (what is said) -> layout.h (how it is set).
// Candidates' code and messages are hostile text: every byte of them is escaped by the renderers, and the page's
// content security policy lets only the page's own two scripts run.
#pragma once

#include <filesystem>
#include <string>

#include "report/run_data.h"

namespace tritonrl {

struct ReportConfig {
  // plotly.min.js to embed for interactive charts. Missing (or too large for the page): the charts stay static SVG, and
  // the page says so.
  std::filesystem::path plotly_js;
};

// The page never gets larger than this.
constexpr size_t kMaxPageBytes = 6u << 20;

// GitHub-flavoured Markdown.
std::string render_markdown(const RunData& run);
std::string render_html(const RunData& run, const ReportConfig& config);

// Writes report.md and report.html into run_dir, each atomically. An interrupted run gives a report that says what is
// missing. Throws Error: (usage) when run_dir is no directory, (environment) when it cannot be written.
void write_report(const std::filesystem::path& run_dir, const ReportConfig& config);

}  // namespace tritonrl
