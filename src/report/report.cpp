// SPDX-License-Identifier: Apache-2.0
#include "report/report.h"

#include "base/files/json.h"
#include "report/layout.h"
#include "report/sections.h"

namespace tritonrl {

std::string render_markdown(const RunData& run) { return reporting::to_markdown(reporting::tell(run)); }

std::string render_html(const RunData& run) { return reporting::to_html(reporting::tell(run)); }

void write_report(const std::filesystem::path& run_dir) {
  RunData run = load_run(run_dir);
  write_file(run_dir / "report.md", render_markdown(run));
  write_file(run_dir / "report.html", render_html(run));
}

}  // namespace tritonrl
