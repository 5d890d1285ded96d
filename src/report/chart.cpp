// SPDX-License-Identifier: Apache-2.0
// Charts as SVG and as tables.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/text.h"
#include "report/layout.h"

namespace tritonrl::reporting {

namespace {

constexpr double kWidth = 760, kLineHeight = 300, kBarStep = 34;
constexpr size_t kMostDots = 60;

// Steps of 1, 2 or 5 times a power of ten, about `count` of them over `span`.
double nice_step(double span, int count) {
  double raw = span / count, power = std::pow(10, std::floor(std::log10(raw)));
  for (double factor : {1.0, 2.0, 5.0}) {
    if (raw <= factor * power * 1.0001) return factor * power;
  }
  return 10 * power;
}

struct Axis {
  double low = 0, high = 1, step = 0.2;
  double place(double value, double from, double to) const { return from + (value - low) / (high - low) * (to - from); }
  int digits() const { return std::max(0, static_cast<int>(std::ceil(-std::log10(step) - 1e-9))); }
};

// Covers [low, high] with whole steps.
Axis axis_for(double low, double high, int count) {
  if (!(high > low)) high = low + (low == 0 ? 1 : std::abs(low));
  Axis axis;
  axis.step = nice_step(high - low, count);
  axis.low = std::floor(low / axis.step + 1e-9) * axis.step;
  axis.high = std::ceil(high / axis.step - 1e-9) * axis.step;
  return axis;
}

std::string number(double value) { return fixed(value, value == std::floor(value) ? 0 : std::abs(value) < 10 ? 2 : 1); }
std::string at(double value) { return fixed(value, 1); }

std::string label(double x, double y, const char* anchor, const std::string& text, const char* css = "") {
  return cat("<text x=\"", at(x), "\" y=\"", at(y), "\" text-anchor=\"", anchor, "\"", css, ">", escape_html(text),
             "</text>");
}

// What a browser shows beside the pointer; in an element that is not empty.
std::string hover(const std::string& text) { return "<title>" + escape_html(text) + "</title>"; }

std::string grid_line(double x1, double y1, double x2, double y2) {
  return cat("<line class=\"grid\" x1=\"", at(x1), "\" y1=\"", at(y1), "\" x2=\"", at(x2), "\" y2=\"", at(y2), "\"/>");
}

std::string open_svg(const Chart& chart, double height) {
  return cat("<svg viewBox=\"0 0 ", at(kWidth), " ", at(height), "\" role=\"img\" aria-label=\"",
             escape_html(chart.title + ". " + chart.summary), "\">");
}

// Swatches and names of the series; it wraps: one entry takes about 6.6 units a character and its swatch. `y` is where
// its last row ends up.
std::string legend(const Chart& chart, double* y) {
  std::string swatches;
  double x = 0;
  *y = 14;
  for (const auto& series : chart.series) {
    double width = 30 + 6.6 * static_cast<double>(series.name.size());
    if (x + width > kWidth) x = 0, *y += 20;
    swatches += cat("<rect x=\"", at(x), "\" y=\"", at(*y - 10), "\" width=\"12\" height=\"12\" style=\"fill:var(--",
                    series.color, ")\"/>", label(x + 18, *y, "start", series.name));
    x += width;
  }
  return swatches;
}

std::string lines_svg(const Chart& chart) {
  double x_low = INFINITY, x_high = -INFINITY, y_low = 0, y_high = -INFINITY;
  for (const auto& series : chart.series) {
    for (size_t i = 0; i < series.y.size(); ++i) {
      if (!std::isfinite(series.y[i])) continue;
      x_low = std::min(x_low, series.x[i]), x_high = std::max(x_high, series.x[i]);
      y_low = std::min(y_low, series.y[i]), y_high = std::max(y_high, series.y[i]);
    }
  }
  if (!std::isfinite(x_low))
    return open_svg(chart, 40) + label(kWidth / 2, 24, "middle", "no finite values") + "</svg>";
  Axis y_axis = axis_for(y_low, y_high, 5);
  Axis x_axis{x_low, x_high > x_low ? x_high : x_low + 1, 1};
  x_axis.step = std::max(1.0, nice_step(x_axis.high - x_axis.low, 8));
  double legend_end = 0;
  std::string swatches = chart.series.size() > 1 ? legend(chart, &legend_end) : "";
  double left = 56, right = kWidth - 16, top = legend_end + (swatches.empty() ? 26 : 34),
         bottom = top + kLineHeight - 70;
  std::string svg = open_svg(chart, bottom + 44) + swatches;
  for (double y = y_axis.low; y <= y_axis.high + y_axis.step / 2; y += y_axis.step) {
    double place = y_axis.place(y, bottom, top);
    svg += grid_line(left, place, right, place) + label(left - 8, place + 4, "end", fixed(y, y_axis.digits()));
  }
  for (double x = std::ceil(x_axis.low / x_axis.step) * x_axis.step; x <= x_axis.high; x += x_axis.step) {
    svg += label(x_axis.place(x, left, right), bottom + 18, "middle", fixed(x, 0));
  }
  svg +=
      label((left + right) / 2, bottom + 38, "middle", chart.x_label) + label(left, top - 12, "start", chart.y_label);
  for (const auto& series : chart.series) {
    std::string path, dots;
    bool pen_down = false;
    // Of many points every so many says its numbers, and none is drawn.
    size_t stride = (series.y.size() + kMostDots - 1) / kMostDots;
    for (size_t i = 0; i < series.y.size(); ++i) {
      if (!std::isfinite(series.y[i])) {
        pen_down = pen_down && chart.join_gaps;
        continue;
      }
      std::string x = at(x_axis.place(series.x[i], left, right)), y = at(y_axis.place(series.y[i], bottom, top));
      path += cat(pen_down ? "L" : "M", x, " ", y);
      pen_down = true;
      if (i % stride != 0) continue;
      std::string look = stride == 1 ? cat("r=\"3\" style=\"fill:var(--", series.color, ")\"")
                                     : std::string("r=\"6\" style=\"fill:transparent\"");
      dots += cat("<circle cx=\"", x, "\" cy=\"", y, "\" ", look, ">",
                  hover(cat(series.name, ", ", chart.x_label, " ", number(series.x[i]), ": ", fixed(series.y[i], 3))),
                  "</circle>");
    }
    svg += cat("<path d=\"", path, "\" style=\"fill:none;stroke-width:2;stroke:var(--", series.color, ")\"/>", dots);
  }
  return svg + "</svg>";
}

std::string bars_svg(const Chart& chart) {
  size_t count = chart.categories.size();
  std::vector<double> totals(count, 0.0);
  for (const auto& series : chart.series) {
    for (size_t i = 0; i < count; ++i) totals[i] += series.y[i];
  }
  size_t longest = 0;
  for (const auto& category : chart.categories) longest = std::max(longest, category.size());
  double left = std::min(260.0, 20 + 6.6 * static_cast<double>(longest)), right = kWidth - (chart.shares ? 24 : 90);
  double legend_end = 0;
  std::string swatches = chart.series.size() > 1 ? legend(chart, &legend_end) : "";
  double top = swatches.empty() ? 6 : legend_end + 14, bottom = top + kBarStep * static_cast<double>(count);
  double most = *std::max_element(totals.begin(), totals.end());
  Axis axis = chart.shares ? Axis{0, 1, 0.25} : axis_for(0, most, 6);
  std::string svg = open_svg(chart, bottom + 42) + swatches;
  for (double x = 0; x <= axis.high + axis.step / 2; x += axis.step) {
    double place = axis.place(x, left, right);
    svg += grid_line(place, top, place, bottom) +
           label(place, bottom + 16, "middle", chart.shares ? fixed(x * 100, 0) + " %" : fixed(x, axis.digits()));
  }
  svg += label((left + right) / 2, bottom + 36, "middle", chart.x_label);
  for (size_t i = 0; i < count; ++i) {
    double y = top + kBarStep * static_cast<double>(i) + 5, height = kBarStep - 10, from = 0;
    double scale = chart.shares ? (totals[i] > 0 ? 1 / totals[i] : 0) : 1;
    svg += label(left - 8, y + height / 2 + 4, "end", chart.categories[i]);
    for (const auto& series : chart.series) {
      double x1 = axis.place(from, left, right), x2 = axis.place(from + series.y[i] * scale, left, right);
      from += series.y[i] * scale;
      if (x2 - x1 < 0.05) continue;
      svg += cat("<rect class=\"bar\" x=\"", at(x1), "\" y=\"", at(y), "\" width=\"", at(x2 - x1), "\" height=\"",
                 at(height), "\" style=\"fill:var(--", series.color, ")\">",
                 hover(cat(chart.categories[i], ", ", series.name, ": ", number(series.y[i]), chart.unit)), "</rect>");
      if (chart.shares && x2 - x1 > 22)
        svg += label((x1 + x2) / 2, y + height / 2 + 4, "middle", number(series.y[i]), " class=\"on-bar\"");
    }
    if (!chart.shares) {
      svg += label(axis.place(from, left, right) + 6, y + height / 2 + 4, "start", number(totals[i]) + chart.unit);
    }
  }
  return svg + "</svg>";
}

std::string intervals_svg(const Chart& chart) {
  CHECK(chart.series.size() == 3) << chart.title;
  const auto &value = chart.series[0].y, &low = chart.series[1].y, &high = chart.series[2].y;
  size_t count = chart.categories.size(), longest = 0;
  double least = 0, most = 0;
  for (size_t i = 0; i < count; ++i) {
    longest = std::max(longest, chart.categories[i].size());
    if (!std::isfinite(low[i]) || !std::isfinite(high[i])) continue;
    least = std::min(least, low[i]), most = std::max(most, high[i]);
  }
  double left = std::min(330.0, 20 + 6.6 * static_cast<double>(longest)), right = kWidth - 24;
  double top = 6, bottom = top + kBarStep * static_cast<double>(count);
  if (most <= least) most = least + 1;
  Axis axis{least, most, nice_step(most - least, 6)};
  axis.low = std::floor(axis.low / axis.step) * axis.step;
  axis.high = std::ceil(axis.high / axis.step) * axis.step;
  std::string svg = open_svg(chart, bottom + 42);
  for (double x = axis.low; x <= axis.high + axis.step / 2; x += axis.step) {
    double place = axis.place(x, left, right);
    svg += grid_line(place, top, place, bottom) +
           label(place, bottom + 16, "middle", fixed(x, axis.digits()) + chart.unit);
  }
  std::string colour = cat("var(--", chart.series[0].color, ")"), zero = at(axis.place(0, left, right));
  svg += cat("<path d=\"M", zero, " ", at(top), "L", zero, " ", at(bottom),
             "\" style=\"stroke-width:1.5;stroke:currentColor\"/>");
  svg += label((left + right) / 2, bottom + 36, "middle", chart.x_label);
  for (size_t i = 0; i < count; ++i) {
    double y = top + kBarStep * (static_cast<double>(i) + 0.5);
    svg += label(left - 8, y + 4, "end", chart.categories[i]);
    if (!std::isfinite(value[i]) || !std::isfinite(low[i]) || !std::isfinite(high[i])) continue;
    svg +=
        cat("<path d=\"M", at(axis.place(low[i], left, right)), " ", at(y), "L", at(axis.place(high[i], left, right)),
            " ", at(y), "\" style=\"stroke-width:2;stroke:", colour, "\"/><circle cx=\"",
            at(axis.place(value[i], left, right)), "\" cy=\"", at(y), "\" r=\"4\" style=\"fill:", colour, "\">",
            hover(cat(chart.categories[i], ": ", number(value[i]), ", ", number(low[i]), " to ", number(high[i]),
                      chart.unit)),
            "</circle>");
  }
  return svg + "</svg>";
}

}  // namespace

std::string chart_svg(const Chart& chart) {
  for (const auto& series : chart.series) {
    size_t expected = chart.kind == Chart::Kind::kLines ? series.x.size() : chart.categories.size();
    CHECK(series.y.size() == expected) << chart.title << ", " << series.name;
  }
  CHECK(!chart.series.empty()) << chart.title;
  return chart.kind == Chart::Kind::kLines  ? lines_svg(chart)
         : chart.kind == Chart::Kind::kBars ? bars_svg(chart)
                                            : intervals_svg(chart);
}

Table chart_table(const Chart& chart, size_t max_rows) {
  Table table;
  table.caption = chart.title;
  bool lines = chart.kind == Chart::Kind::kLines;
  table.columns.push_back({lines ? chart.x_label : "", lines});
  for (const auto& series : chart.series) table.columns.push_back({series.name, true});
  // Line charts here share their x values.
  size_t count = lines ? chart.series.front().x.size() : chart.categories.size();
  size_t shown = std::min(count, std::max<size_t>(2, max_rows));
  if (shown < count) table.caption += cat(" (", shown, " of ", count, " points, evenly spaced)");
  for (size_t row = 0; row < shown; ++row) {
    size_t i = shown < count ? row * (count - 1) / (shown - 1) : row;
    std::vector<Cell> cells = {cell(lines ? number(chart.series.front().x[i]) : chart.categories[i])};
    for (const auto& series : chart.series) {
      double y = series.y[i];
      cells.push_back(cell(!std::isfinite(y) ? "-" : lines ? fixed(y, 3) : number(y)));
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

}  // namespace tritonrl::reporting
