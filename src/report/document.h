// SPDX-License-Identifier: Apache-2.0
// Document: what a report says, before it is Markdown or HTML.
//
// Names here are common words, so the room's inner parts live in a namespace of their own.
// sections.h builds one Document from a run; the two renderers only lay it out. Text in a Document is raw: it may hold
// anything a candidate wrote, and each renderer escapes all of it in one place. Nothing here is ever markup.
#pragma once

#include <string>
#include <variant>
#include <vector>

namespace tritonrl::reporting {

struct Span {
  enum class Kind { kPlain, kStrong, kCode };
  Kind kind = Kind::kPlain;
  std::string text;
};
using Text = std::vector<Span>;
inline Span plain(std::string text) { return {Span::Kind::kPlain, std::move(text)}; }
inline Span strong(std::string text) { return {Span::Kind::kStrong, std::move(text)}; }
inline Span code(std::string text) { return {Span::Kind::kCode, std::move(text)}; }

struct Heading {
  int level = 2;  // 2 or 3; the title is level 1.
  std::string text;
};

struct Paragraph {
  enum class Role { kNormal, kLead, kNote, kWarning };
  Role role = Role::kNormal;
  Text text;
};

struct BulletList {
  bool warning = false;  // Drawn as a call-out.
  std::string title;     // "" = none.
  std::vector<Text> items;
};

struct Cell {
  Text text;
  std::string note;  // Second, smaller line: "20 of 48, 29-56 %". "" = none.
};

struct Table {
  std::string caption;
  struct Column {
    std::string title;
    bool numeric = false;  // Right-aligned, tabular figures.
  };
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;  // Each as long as columns; the first cell is the row's heading.
};

// Verbatim text: source code, YAML, JSON, a command.
struct CodeBlock {
  std::string caption;
  std::string language;  // For Markdown fences: "python", "yaml", "json", "sh", "text".
  std::string text;
  bool folded = false;  // HTML shows it behind a click.
};

struct Series {
  std::string name;
  std::string color;      // Name of a CSS variable of the page, e.g. "c-line"; the page defines it for light and dark.
  std::vector<double> x;  // Line charts only.
  std::vector<double> y;  // Same length as x, or as the chart's categories. Not finite = a gap.
};

// kLines: y over x. kBars: horizontal bars, one per category, the series stacked. kIntervals: one per category, a dot
// with its interval around a line at 0; three series (value, low, high), drawn in the first one's colour.
struct Chart {
  enum class Kind { kLines, kBars, kIntervals };
  Kind kind = Kind::kLines;
  std::string title;
  std::string summary;  // One or two sentences that say what the picture shows, for those who cannot see it.
  std::string x_label, y_label;
  std::vector<std::string> categories;  // Bars only, top to bottom.
  std::vector<Series> series;
  bool shares = false;     // Bars: each bar is scaled to 100 %; values stay counts.
  bool join_gaps = false;  // Lines: over values that are not finite.
  std::string unit;        // Suffix of values: " s".
};

// Evenly spaced values that keep the first and the last; all of them where there are at most `limit` (2 or more).
template <class T>
std::vector<T> evenly_spaced(const std::vector<T>& values, size_t limit) {
  if (values.size() <= limit) return values;
  std::vector<T> picked;
  for (size_t i = 0; i < limit; ++i) picked.push_back(values[i * (values.size() - 1) / (limit - 1)]);
  return picked;
}

using Block = std::variant<Heading, Paragraph, BulletList, Table, CodeBlock, Chart>;

struct Document {
  std::string title;
  std::vector<Block> blocks;
};

}  // namespace tritonrl::reporting
