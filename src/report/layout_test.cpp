// SPDX-License-Identifier: Apache-2.0
// Escaping, charts and words, one at a time.
#include "report/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/text.h"
#include "report/sections.h"

namespace tritonrl::reporting::layout_test {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Escape, Html) {
  EXPECT_EQ(escape_html("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
  EXPECT_EQ(escape_html("tab\tline\n"), "tab\tline\n");
  EXPECT_EQ(escape_html(std::string("nul\0esc\x1b", 8)), "nul[U+0000]esc[U+001B]");
  EXPECT_EQ(escape_html("\xFF"), "\xEF\xBF\xBD");
}

TEST(Escape, Markdown) {
  EXPECT_EQ(escape_markdown("a|b\nc"), "a\\|b c");
  EXPECT_EQ(escape_markdown("wrong_output _x_ *y* [z](u) `c` <b> # \\"),
            "wrong_output \\_x\\_ \\*y\\* \\[z\\](u) \\`c\\` &lt;b&gt; \\# \\\\");
}

TEST(Layout, MarkdownFencesAndSpansOutgrowTheirText) {
  Document document{"t",
                    {CodeBlock{"c", "python", "``````\nx", false}, Paragraph{{}, {code("a ``b")}},
                     Paragraph{{}, {plain("x"), strong(" y ")}}}};
  std::string text = to_markdown(document);
  EXPECT_THAT(text, HasSubstr("```````python\n``````\nx\n```````\n"));
  EXPECT_THAT(text, HasSubstr("```a ``b```"));
  EXPECT_THAT(text, HasSubstr("x **y** "));
}

Chart line_chart(std::vector<double> x, std::vector<double> y) {
  Chart chart;
  chart.title = "t";
  chart.x_label = "step";
  chart.series.push_back({"s", "c-line", std::move(x), std::move(y)});
  return chart;
}

TEST(ChartSvg, LinesGoWhereTheNumbersSay) {
  // x from 1 to 3 over 56 ... 744; y axis 0 ... 2 over 256 ... 26.
  std::string svg = chart_svg(line_chart({1, 2, 3}, {0, 1, 2}));
  EXPECT_THAT(svg, HasSubstr("d=\"M56.0 256.0L400.0 141.0L744.0 26.0\""));
}

TEST(ChartSvg, GapsLiftThePen) {
  std::string svg = chart_svg(line_chart({1, 2, 3, 4, 5}, {1, 1, NAN, 1, INFINITY}));
  EXPECT_THAT(svg, HasSubstr("d=\"M56.0 26.0L285.3 26.0M744.0 26.0\""));
  EXPECT_THAT(chart_svg(line_chart({1}, {NAN})), HasSubstr("no finite values"));
}

TEST(ChartSvg, MarksSayTheirNumbersAndNothingElse) {
  Chart chart = line_chart({1, 2}, {0.5, 0.25});
  chart.series[0].name = "<b>&";
  EXPECT_THAT(chart_svg(chart), HasSubstr("<title>&lt;b&gt;&amp;, step 2: 0.250</title></circle>"));
  std::vector<double> many(600, 1.0);
  std::string svg = chart_svg(line_chart(many, many));
  EXPECT_THAT(svg, HasSubstr("fill:transparent"));
  EXPECT_LT(svg.size(), 40000u);
}

TEST(ChartSvg, OddRangesStayFinite) {
  for (auto y : std::vector<std::vector<double>>{{0, 0}, {-3, -1}, {1e-12, 2e-12}, {1e12, -1e12}, {5}}) {
    std::vector<double> x;
    for (size_t i = 0; i < y.size(); ++i) x.push_back(static_cast<double>(i));
    std::string svg = chart_svg(line_chart(x, y));
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
    EXPECT_LT(svg.size(), 20000u);
  }
}

TEST(ChartSvg, SharesAreScaledToTheBar) {
  Chart chart;
  chart.kind = Chart::Kind::kBars;
  chart.shares = true;
  chart.categories = {"a", "none"};
  chart.series = {{"no", "c-grey", {}, {3, 0}}, {"yes", "c-green", {}, {1, 0}}};
  std::string svg = chart_svg(chart);
  // Bars go from 46.4 (label of 4 letters) to 736: three quarters of 689.6 are 517.2.
  EXPECT_THAT(svg, HasSubstr("x=\"46.4\" y=\"33.0\" width=\"517.2\""));
  EXPECT_THAT(svg, HasSubstr("width=\"172.4\""));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(ChartTable, ThinsAndSaysSo) {
  std::vector<double> x, y;
  for (int i = 0; i < 101; ++i) x.push_back(i), y.push_back(2 * i);
  Table table = chart_table(line_chart(x, y), 11);
  ASSERT_EQ(table.rows.size(), 11u);
  EXPECT_EQ(table.rows[1][0].text[0].text, "10");
  EXPECT_EQ(table.rows.back()[1].text[0].text, "200.000");
  EXPECT_THAT(table.caption, HasSubstr("11 of 101 points"));
}

TEST(Words, NumbersReadWell) {
  EXPECT_EQ(percent(5.0 / 12), "41.7 %");
  EXPECT_EQ(percent_range({0.288, 0.557}, 48), "29-56 %");
  EXPECT_EQ(percent_range({0.288, 0.3121}, 5000), "28.8-31.2 %");
  EXPECT_EQ(points(0.125), "+12.5");
  EXPECT_EQ(points(-0.0833), "-8.3");
  EXPECT_EQ(points(-0.00001), "0.0");
  EXPECT_EQ(plural(1, "task"), "1 task");
  EXPECT_EQ(top_counts({{"a", 1}, {"b", 7}, {"c", 3}}, 2), "b 7, c 3, ...");
}

}  // namespace
}  // namespace tritonrl::reporting::layout_test
