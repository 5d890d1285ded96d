// SPDX-License-Identifier: Apache-2.0
// Style sheet of the page.
#include "report/layout.h"

namespace tritonrl::reporting {

// Bar colours are Okabe and Ito's palette, which people with any common colour blindness can tell apart; all of them
// carry dark text with a contrast above 4.5.
const char* const kPageStyle = R"css(:root {
  --bg: #ffffff; --fg: #1b1f24; --soft: #57606a; --rule: #d8dee4; --panel: #f6f8fa;
  --warn-bg: #fff8e6; --warn-rule: #c98a00; --link: #0b57a4;
  --c-line: #0072b2; --c-line-fill: #56b4e9;
  --c-grey: #9aa1a9; --c-orange: #e69f00; --c-vermilion: #d55e00; --c-purple: #cc79a7;
  --c-sky: #56b4e9; --c-yellow: #f0e442; --c-green: #009e73;
}
@media (prefers-color-scheme: dark) {
  :root {
    --bg: #14171b; --fg: #e4e7eb; --soft: #a0a8b2; --rule: #343a42; --panel: #1c2026;
    --warn-bg: #2b2412; --warn-rule: #d9a520; --link: #7cbcf5;
    --c-line: #56b4e9; --c-line-fill: #56b4e9;
  }
}
* { box-sizing: border-box; }
html { color-scheme: light dark; -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--bg); color: var(--fg);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
}
main { max-width: 68rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 1rem; overflow-wrap: anywhere; }
h2 { font-size: 1.3rem; line-height: 1.3; margin: 3rem 0 .75rem; padding-top: 1rem; border-top: 1px solid var(--rule); }
h3 { font-size: 1.05rem; margin: 2rem 0 .5rem; }
p { margin: .6rem 0; max-width: 46rem; overflow-wrap: anywhere; }
p.lead { font-size: 1.125rem; line-height: 1.5; }
figcaption { max-width: 46rem; }
p.note, figcaption, p.caption { color: var(--soft); font-size: .9rem; }
p.caption { margin: 1rem 0 .25rem; }
figcaption strong { color: var(--fg); }
a { color: var(--link); }
nav ul {
  display: flex; flex-wrap: wrap; gap: .25rem 1.1rem; list-style: none;
  margin: 1.5rem 0 0; padding: 0; font-size: .9rem;
}
.warning {
  background: var(--warn-bg); border-left: 4px solid var(--warn-rule); border-radius: 4px;
  padding: .6rem 1rem; margin: 1.25rem 0; max-width: 46rem; overflow-wrap: anywhere;
}
.warning ul { margin: .25rem 0; padding-left: 1.1rem; }
.scroll { overflow-x: auto; margin: 1rem 0; }
table {
  border-collapse: separate; border-spacing: 0; border-bottom: 1px solid var(--rule);
  font-size: .9rem; font-variant-numeric: tabular-nums;
}
caption { text-align: left; color: var(--soft); padding-bottom: .4rem; }
th, td { text-align: left; vertical-align: top; padding: .4rem .8rem .4rem 0; border-top: 1px solid var(--rule); }
thead th, tbody tr:first-child > * { border-top: 0; }
thead th { font-weight: 600; border-bottom: 2px solid var(--rule); white-space: nowrap; vertical-align: bottom; }
tbody th { font-weight: 400; }
tbody th:first-child { position: sticky; left: 0; background: var(--bg); }
.num { text-align: right; white-space: nowrap; }
td small, th small { display: block; color: var(--soft); font-size: .78rem; }
td:not(.num) { overflow-wrap: anywhere; min-width: 9rem; }
code, pre { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; }
code { font-size: .88em; background: var(--panel); border-radius: 3px; padding: .08em .3em; }
pre {
  background: var(--panel); border: 1px solid var(--rule); border-radius: 6px;
  padding: .8rem 1rem; margin: .25rem 0 1rem;
  overflow: auto; max-height: 36rem; font-size: .82rem; line-height: 1.45; tab-size: 4;
}
pre code { font-size: inherit; background: none; padding: 0; }
details { margin: .5rem 0 1rem; }
summary { cursor: pointer; color: var(--soft); font-size: .9rem; }
figure { margin: 1.5rem 0; }
.chart { overflow-x: auto; margin-top: .5rem; }
.chart svg { display: block; width: 100%; min-width: 34rem; max-width: 56rem; height: auto; }
.chart text { font-size: 12px; fill: var(--fg); }
.chart .on-bar { fill: #14171b; font-weight: 600; }
.chart .grid { stroke: var(--rule); stroke-width: 1; }
.chart .bar { stroke: var(--bg); stroke-width: 1; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
@media (max-width: 40rem) {
  main { padding: 1.25rem 1rem 3rem; }
  p.lead { font-size: 1.05rem; }
}
@media print { pre { max-height: none; white-space: pre-wrap; } }
)css";

}  // namespace tritonrl::reporting
