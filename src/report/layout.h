// SPDX-License-Identifier: Apache-2.0
// The two renderers of a Document, and the escaping both rest on.
#pragma once

#include <string>
#include <string_view>

#include "report/document.h"

namespace tritonrl::reporting {

// Text that others wrote, made harmless (printable() of base/text.h, and more).
// For element content and double-quoted attributes.
std::string escape_html(std::string_view text);
// For running text and table cells: one line, nothing in it is markup.
std::string escape_markdown(std::string_view text);

std::string to_markdown(const Document& document);

// A whole page, without a script.
std::string to_html(const Document& document);

// A chart as <svg> for a page whose style sheet defines the colour variables; its marks say their numbers to a pointer.
std::string chart_svg(const Chart& chart);
// The numbers behind a chart, at most max_rows rows (evenly spaced ones when there are more; the caption says so).
Table chart_table(const Chart& chart, size_t max_rows);

extern const char* const kPageStyle;  // page_parts.cpp

}  // namespace tritonrl::reporting
