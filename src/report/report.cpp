// SPDX-License-Identifier: Apache-2.0
#include "report/report.h"

#include "base/error.h"
#include "base/text.h"
#include "report/layout.h"
#include "report/story.h"

namespace tritonrl {

std::string render_markdown(const RunData& run) { return reporting::to_markdown(reporting::tell(run)); }

std::string render_html(const RunData& run, const ReportConfig& config) {
  using reporting::Paragraph;
  reporting::Document document = reporting::tell(run);
  auto no_plotly = [&](const std::string& why) {
    document.blocks.push_back(
        Paragraph{Paragraph::Role::kNote, {reporting::plain(cat(why, ", so the charts above are static pictures."))}});
    return reporting::to_html(document, "");
  };
  std::error_code ignored;
  if (config.plotly_js.empty() || !std::filesystem::is_regular_file(config.plotly_js, ignored)) {
    return no_plotly("Plotly's script was not found when this page was written");
  }
  std::string script;
  try {
    script = read_file(config.plotly_js);
  } catch (const Error&) {
    return no_plotly("Plotly's script could not be read when this page was written");
  }
  std::string page = reporting::to_html(document, script);
  return page.size() <= kMaxPageBytes ? page : no_plotly("Plotly's script would have made this page too large");
}

void write_report(const std::filesystem::path& run_dir, const ReportConfig& config) {
  RunData run = load_run(run_dir);
  write_file(run_dir / "report.md", render_markdown(run));
  write_file(run_dir / "report.html", render_html(run, config));
}

}  // namespace tritonrl
