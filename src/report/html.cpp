// SPDX-License-Identifier: Apache-2.0
// Document -> one self-contained page.
#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "report/layout.h"

namespace tritonrl::reporting {

namespace {

constexpr size_t kHtmlChartRows = 50;

// An id for a heading. Headings are our own words, so this need not be unique against hostile text.
std::string slug(const std::string& text) {
  std::string id;
  for (char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)))
      id += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!id.empty() && id.back() != '-')
      id += '-';
  }
  return trim(replace_all(id, "-", " ")).empty() ? "section" : id;
}

std::string html_text(const Text& text) {
  std::string out;
  for (const auto& span : text) {
    const char* tag = span.kind == Span::Kind::kCode ? "code" : span.kind == Span::Kind::kStrong ? "strong" : nullptr;
    out += tag ? cat("<", tag, ">", escape_html(span.text), "</", tag, ">") : escape_html(span.text);
  }
  return out;
}

struct HtmlWriter {
  std::string out;

  void operator()(const Heading& heading) {
    std::string tag = cat("h", heading.level);
    out += cat("<", tag, " id=\"", slug(heading.text), "\">", escape_html(heading.text), "</", tag, ">\n");
  }
  void operator()(const Paragraph& paragraph) {
    constexpr const char* kClasses[] = {"", " class=\"lead\"", " class=\"note\"", " class=\"warning\" role=\"alert\""};
    out += cat("<p", kClasses[static_cast<int>(paragraph.role)], ">", html_text(paragraph.text), "</p>\n");
  }
  void operator()(const BulletList& list) {
    if (list.warning) out += "<div class=\"warning\">\n";
    if (!list.title.empty()) out += cat("<p><strong>", escape_html(list.title), "</strong></p>\n");
    out += "<ul>\n";
    for (const auto& item : list.items) out += cat("<li>", html_text(item), "</li>\n");
    out += "</ul>\n";
    if (list.warning) out += "</div>\n";
  }
  void operator()(const Table& table) {
    if (table.rows.empty()) return;
    // A wide table scrolls inside its own box; the box can be reached and moved with the keyboard.
    out += cat("<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"", escape_html(table.caption),
               "\">\n<table>\n<caption>", escape_html(table.caption), "</caption>\n<thead><tr>");
    for (const auto& column : table.columns) {
      out += cat("<th scope=\"col\"", column.numeric ? " class=\"num\"" : "", ">", escape_html(column.title), "</th>");
    }
    out += "</tr></thead>\n<tbody>\n";
    for (const auto& row : table.rows) {
      out += "<tr>";
      for (size_t i = 0; i < row.size(); ++i) {
        const char* tag = i == 0 ? "th" : "td";
        std::string attributes = i == 0 ? " scope=\"row\"" : "";
        if (table.columns[i].numeric) attributes += " class=\"num\"";
        out += cat("<", tag, attributes, ">", html_text(row[i].text));
        if (!row[i].note.empty()) out += cat("<small>", escape_html(row[i].note), "</small>");
        out += cat("</", tag, ">");
      }
      out += "</tr>\n";
    }
    out += "</tbody>\n</table>\n</div>\n";
  }
  void operator()(const CodeBlock& block) {
    std::string pre = cat("<pre tabindex=\"0\"><code>", escape_html(block.text), "</code></pre>\n");
    if (block.folded) {
      out += cat("<details>\n<summary>", escape_html(block.caption), "</summary>\n", pre, "</details>\n");
    } else {
      out += cat("<p class=\"caption\">", escape_html(block.caption), "</p>\n", pre);
    }
  }
  void operator()(const Chart& chart) {
    out += cat("<figure>\n<figcaption><strong>", escape_html(chart.title), ".</strong> ", escape_html(chart.summary),
               "</figcaption>\n<div class=\"chart\">", chart_svg(chart),
               "</div>\n<details>\n<summary>Numbers of this chart</summary>\n");
    (*this)(chart_table(chart, kHtmlChartRows));
    out += "</details>\n</figure>\n";
  }
};

}  // namespace

std::string to_html(const Document& document) {
  HtmlWriter writer;
  std::string contents;
  for (const auto& block : document.blocks) {
    std::visit(writer, block);
    if (const auto* heading = std::get_if<Heading>(&block); heading && heading->level == 2) {
      contents += cat("<li><a href=\"#", slug(heading->text), "\">", escape_html(heading->text), "</a></li>\n");
    }
  }
  std::string page =
      cat("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
          "base-uri 'none'; form-action 'none'\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta name=\"color-scheme\" content=\"light dark\">\n<title>",
          escape_html(document.title), "</title>\n<style>\n", kPageStyle, "</style>\n</head>\n<body>\n<main>\n<h1>",
          escape_html(document.title), "</h1>\n");
  // Contents come after the opening paragraphs: the answer first.
  size_t first_section = std::min(writer.out.find("<h2"), writer.out.size());
  page += writer.out.substr(0, first_section);
  if (!contents.empty()) page += "<nav aria-label=\"Contents\">\n<ul>\n" + contents + "</ul>\n</nav>\n";
  page += writer.out.substr(first_section) + "</main>\n";
  return page + "</body>\n</html>\n";
}

}  // namespace tritonrl::reporting
