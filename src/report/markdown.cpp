// SPDX-License-Identifier: Apache-2.0
// Document -> GitHub-flavoured Markdown.
#include <algorithm>

#include "base/text.h"
#include "report/layout.h"

namespace tritonrl::reporting {

namespace {

constexpr size_t kMarkdownChartRows = 10;

// The longest run of backticks in text.
size_t backticks(const std::string& text) {
  size_t longest = 0, here = 0;
  for (char c : text) {
    here = c == '`' ? here + 1 : 0;
    longest = std::max(longest, here);
  }
  return longest;
}

std::string inline_code(const std::string& raw, bool in_table) {
  std::string text = replace_all(replace_all(printable(raw), "\n", " "), "\t", " ");
  if (trim(text).empty()) return "";
  if (in_table) text = replace_all(text, "|", "\\|");  // Table cells are cut before code spans are read.
  std::string fence(backticks(text) + 1, '`');
  std::string pad = text.front() == '`' || text.back() == '`' ? " " : "";
  return fence + pad + text + pad + fence;
}

std::string markdown_text(const Text& text, bool in_table = false) {
  std::string out;
  for (const auto& span : text) {
    if (span.kind == Span::Kind::kCode) {
      out += inline_code(span.text, in_table);
    } else if (span.kind == Span::Kind::kStrong && !trim(span.text).empty()) {
      std::string inner = trim(span.text);  // `** x**` is not strong: blanks go outside.
      size_t before = span.text.find(inner.front());
      out += escape_markdown(span.text.substr(0, before)) + "**" + escape_markdown(inner) + "**" +
             escape_markdown(span.text.substr(before + inner.size()));
    } else {
      out += escape_markdown(span.text);
    }
  }
  return out;
}

struct MarkdownWriter {
  std::string out;

  void operator()(const Heading& heading) {
    out += std::string(static_cast<size_t>(heading.level), '#') + " " + escape_markdown(heading.text) + "\n\n";
  }
  void operator()(const Paragraph& paragraph) {
    out += (paragraph.role == Paragraph::Role::kWarning ? "> " : "") + markdown_text(paragraph.text) + "\n\n";
  }
  void operator()(const BulletList& list) {
    if (!list.title.empty()) out += "**" + escape_markdown(list.title) + "**\n\n";
    for (const auto& item : list.items) out += "- " + markdown_text(item) + "\n";
    out += "\n";
  }
  void operator()(const Table& table) {
    if (!table.caption.empty()) out += "**" + escape_markdown(table.caption) + "**\n\n";
    std::string rule = "|";
    out += "|";
    for (const auto& column : table.columns) {
      out += cat(" ", escape_markdown(column.title), " |");
      rule += column.numeric ? " ---: |" : " --- |";
    }
    out += "\n" + rule + "\n";
    for (const auto& row : table.rows) {
      out += "|";
      for (const auto& cell : row) {
        std::string note = cell.note.empty() ? "" : cat(" (", escape_markdown(cell.note), ")");
        out += cat(" ", markdown_text(cell.text, true), note, " |");
      }
      out += "\n";
    }
    out += "\n";
  }
  void operator()(const CodeBlock& block) {
    if (!block.caption.empty()) out += escape_markdown(block.caption) + ":\n\n";
    std::string text = printable(block.text);
    std::string fence(std::max<size_t>(3, backticks(text) + 1), '`');
    out += fence + block.language + "\n" + text + (text.ends_with("\n") ? "" : "\n") + fence + "\n\n";
  }
  void operator()(const Chart& chart) {
    out += "**" + escape_markdown(chart.title) + ".** " + escape_markdown(chart.summary) + "\n\n";
    if (chart.kind == Chart::Kind::kBars && chart.shares) return;  // The outcome table says the same in numbers.
    Table table = chart_table(chart, kMarkdownChartRows);
    table.caption = "";
    (*this)(table);
  }
};

}  // namespace

std::string to_markdown(const Document& document) {
  MarkdownWriter writer{"# " + escape_markdown(document.title) + "\n\n"};
  for (const auto& block : document.blocks) std::visit(writer, block);
  while (writer.out.ends_with("\n\n")) writer.out.pop_back();
  return writer.out;
}

}  // namespace tritonrl::reporting
